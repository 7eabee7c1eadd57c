//! Configuration: every option of `serve` comes from a flag, else from the environment, else from a file,
//! else it has its default. The options are written down once, as the arguments of `serve`; a key of the
//! file is the name of one of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Subcommand};
use serde::Serialize;

use crate::database::Url;
use crate::output::{self, Format};
use crate::serve;

/// The file that is read when none is named, if it is there.
const FILE: &str = "holdfast.toml";
/// The command whose arguments are configuration.
const SERVE: &str = "serve";
/// Arguments of it that are not.
const NO_KEYS: [&str; 3] = ["config", "help", "version"];

/// What is shown of a secret.
const HIDDEN: &str = "(hidden)";

/// What to do with a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
}

/// Print the configuration that `serve` would have here, and where each value comes from
#[derive(Debug, clap::Args)]
#[command(after_help = "Flags win over the environment (HOLDFAST_…), that over the file, that over the \
                        defaults.\nSecrets are not shown. Nothing is opened but certificates. Exit status 2 if it cannot be served.\n\n\
                        Example:\n  holdfast config check --config /etc/holdfast/holdfast.toml")]
pub(crate) struct CheckArgs {
    /// The file; without it ./holdfast.toml is read if it is there
    #[arg(long, env = "HOLDFAST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Reads the command line; for `serve` together with the file.
pub(crate) fn matches(command: clap::Command, line: Vec<OsString>) -> Result<ArgMatches> {
    let first = command.clone().get_matches_from(line.clone());
    let Some((SERVE, of_serve)) = first.subcommand() else { return Ok(first) };
    let named = of_serve.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let Some(file) = File::find(&command, named)? else { return Ok(first) };
    Ok(command.get_matches_from(file.joined(of_serve, line)))
}

/// Prints what `serve` would be told.
pub(crate) fn run<C: CommandFactory>(command: Command) -> Result<ExitCode> {
    let Command::Check(args) = command;
    let file = File::find(&C::command(), args.config.as_deref())?;
    let (effective, served) = effective::<C>(file.as_ref())?;
    match args.format {
        Format::Json => output::print_json(&effective)?,
        Format::Text => output::print(&text(&effective))?,
    }
    // It is shown also where it cannot be served: then it is seen where the value comes from.
    served.checked()?;
    Ok(ExitCode::SUCCESS)
}

/// A configuration with the source of each value.
#[derive(Debug, Serialize)]
pub(crate) struct Effective {
    file: Option<PathBuf>,
    options: BTreeMap<String, Setting>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Setting {
    /// None: not set.
    value: Option<String>,
    source: String,
}

/// The configuration to show, and the arguments that `serve` would have.
fn effective<C: CommandFactory>(file: Option<&File>) -> Result<(Effective, serve::Args)> {
    let line = vec![OsString::from("holdfast"), OsString::from(SERVE)];
    let first = C::command().try_get_matches_from(line.clone())?;
    let (_, alone) = first.subcommand().context("no serve")?;
    let full = match file {
        Some(file) => C::command().try_get_matches_from(file.joined(alone, line))?,
        None => first.clone(),
    };
    let (_, full) = full.subcommand().context("no serve")?;
    let mut options = BTreeMap::new();
    for option in options_of(&C::command())? {
        let source = match alone.value_source(&option.key) {
            Some(ValueSource::EnvVariable) => format!("environment {}", option.variable),
            Some(ValueSource::CommandLine) => "flag".to_owned(),
            Some(_) | None => match file.filter(|file| file.values.contains_key(&option.key)) {
                Some(file) => format!("file {}", file.path.display()),
                None => "default".to_owned(),
            },
        };
        let value = full.get_raw(&option.key).map(|values| {
            let shown: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
            match (option.key.as_str(), option.is_secret) {
                // All of it but the password.
                ("database", _) => {
                    Url::parse(&shown.join(",")).map_or_else(|_| HIDDEN.to_owned(), |url| url.to_string())
                }
                ("redis", _) => holdfast_redis::Address::parse(&shown.join(","))
                    .map_or_else(|_| HIDDEN.to_owned(), |address| address.to_string()),
                (_, true) => HIDDEN.to_owned(),
                (_, false) => shown.join(","),
            }
        });
        options.insert(option.key, Setting { value, source });
    }
    let effective = Effective { file: file.map(|file| file.path.clone()), options };
    Ok((effective, serve::Args::from_arg_matches(full)?))
}

fn text(effective: &Effective) -> String {
    let mut lines = vec![match &effective.file {
        Some(file) => format!("# {}", file.display()),
        None => "# no file".to_owned(),
    }];
    for (key, Setting { value, source }) in &effective.options {
        lines.push(match value {
            Some(value) => format!("{key} = {value:?}  # {source}"),
            None => format!("# {key} is not set"),
        });
    }
    lines.join("\n")
}

/// One option of `serve`.
struct OptionOf {
    key: String,
    flag: String,
    variable: String,
    is_switch: bool,
    is_secret: bool,
}

fn options_of(command: &clap::Command) -> Result<Vec<OptionOf>> {
    let serve = command.find_subcommand(SERVE).context("no serve")?;
    let known =
        serve.get_arguments().filter(|arg| !NO_KEYS.contains(&arg.get_id().as_str()) && !arg.is_hide_set());
    known
        .map(|arg| {
            let key = arg.get_id().to_string();
            Ok(OptionOf {
                flag: format!("--{}", arg.get_long().with_context(|| format!("{key} has no flag"))?),
                variable: arg.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
                is_switch: matches!(arg.get_action(), ArgAction::SetTrue),
                is_secret: arg.is_hide_env_values_set(),
                key,
            })
        })
        .collect()
}

/// A configuration file: its values as the flags that say the same.
struct File {
    path: PathBuf,
    values: BTreeMap<String, Vec<OsString>>,
}

impl File {
    /// The file that is named, which must be there, or the usual one, which may be.
    fn find(command: &clap::Command, named: Option<&Path>) -> Result<Option<Self>> {
        let path = named.filter(|path| !path.as_os_str().is_empty());
        match path {
            Some(path) => Self::read(command, path).map(Some),
            None if Path::new(FILE).exists() => Self::read(command, Path::new(FILE)).map(Some),
            None => Ok(None),
        }
    }

    fn read(command: &clap::Command, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(command, path, &text).with_context(|| path.display().to_string())
    }

    fn parse(command: &clap::Command, path: &Path, text: &str) -> Result<Self> {
        // The parser's message shows the line, which may hold a secret: only the place is told.
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(0, |before| before.lines().count());
            anyhow::anyhow!("not TOML, near line {}: {}", line.max(1), error.message())
        })?;
        let options = options_of(command)?;
        let mut values = BTreeMap::new();
        for (key, value) in table {
            let Some(option) = options.iter().find(|option| option.key == key) else {
                let known: Vec<_> = options.iter().map(|option| option.key.as_str()).collect();
                bail!("unknown key `{key}`; known are {}", known.join(", "));
            };
            let flags = flags(option, &value).with_context(|| format!("`{key}`"))?;
            let line = [OsString::from("holdfast"), OsString::from(SERVE)].into_iter().chain(flags.clone());
            if let Err(error) = command.clone().try_get_matches_from(line)
                && is_about_the_value(&error)
            {
                if option.is_secret {
                    bail!("`{key}`: not a valid value");
                }
                bail!("`{key}`: {}", error.to_string().lines().next().unwrap_or_default());
            }
            values.insert(key, flags);
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// The command line with what the file says and nobody said better.
    fn joined(&self, of_serve: &ArgMatches, line: Vec<OsString>) -> Vec<OsString> {
        let said = |key: &str| {
            matches!(of_serve.value_source(key), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        };
        let (program, rest) = line.split_at(line.len().min(2));
        let from_file = self.values.iter().filter(|(key, _)| !said(key)).flat_map(|(_, flags)| flags.clone());
        program.iter().cloned().chain(from_file).chain(rest.iter().cloned()).collect()
    }
}

/// An option that needs another one is judged when all are together.
fn is_about_the_value(error: &clap::Error) -> bool {
    !matches!(
        error.kind(),
        clap::error::ErrorKind::MissingRequiredArgument | clap::error::ErrorKind::ArgumentConflict
    )
}

fn flags(option: &OptionOf, value: &toml::Value) -> Result<Vec<OsString>> {
    if option.is_switch {
        return match value.as_bool() {
            Some(true) => Ok(vec![OsString::from(&option.flag)]),
            Some(false) => Ok(Vec::new()),
            None => bail!("must be true or false"),
        };
    }
    let values = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    values
        .iter()
        .map(|value| match value {
            toml::Value::String(text) => Ok(OsString::from(format!("{}={text}", option.flag))),
            toml::Value::Integer(number) => Ok(OsString::from(format!("{}={number}", option.flag))),
            toml::Value::Boolean(flag) => Ok(OsString::from(format!("{}={flag}", option.flag))),
            toml::Value::Float(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_) => {
                bail!("must be a text, a whole number, true or false, or a list of such")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;

    fn parse(text: &str) -> Result<File> {
        File::parse(&Cli::command(), Path::new("test.toml"), text)
    }

    fn served(file: &str, flags: &[&str]) -> ArgMatches {
        let file = parse(file).unwrap();
        let line: Vec<OsString> = ["holdfast", SERVE].iter().chain(flags).map(OsString::from).collect();
        let first = Cli::command().try_get_matches_from(line.clone()).unwrap();
        let joined = file.joined(first.subcommand().unwrap().1, line);
        Cli::command().try_get_matches_from(joined).unwrap().subcommand().unwrap().1.clone()
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file = "listen = \"127.0.0.1:1\"\nauth = \"off\"\n";
        let matches = served(file, &["--listen", "127.0.0.1:2"]);
        let raw = |key: &str| matches.get_raw(key).unwrap().next().unwrap().to_string_lossy().into_owned();
        assert_eq!((raw("listen"), raw("auth")), ("127.0.0.1:2".into(), "off".into()));
        assert_eq!(raw("database"), "sqlite:holdfast.db");
    }

    #[test]
    fn lists_are_given_value_by_value() {
        let matches = served("payment_secrets = [\"a=1\", \"b=2\"]", &[]);
        assert_eq!(matches.get_raw("payment_secrets").unwrap().count(), 2);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is_shown() {
        let why = |text: &str| format!("{:#}", parse(text).err().unwrap());
        assert!(why("lisen = \"127.0.0.1:1\"").starts_with("unknown key `lisen`; known are listen, "));
        assert!(why("[server]\nlisten = \"x\"").starts_with("unknown key `server`"));
        assert!(why("listen = \"nowhere\"").starts_with("`listen`: "), "{}", why("listen = \"nowhere\""));
        assert!(why("listen = 1.5").contains("must be a text"));
        assert!(why("payment_secrets = {a = \"hush\"}").starts_with("`payment_secrets`: "));
        let torn = why("auth = \"off\"\npayment_secrets = [\"bank=hush\"");
        assert!(torn.starts_with("not TOML, near line 2") && !torn.contains("hush"), "{torn}");
        assert!(why("constant_answer = true").starts_with("unknown key"), "what is hidden is no option");
    }

    #[test]
    fn a_database_is_shown_without_its_password() {
        let shown = |text: &str| {
            let file = parse(&format!("database = \"{text}\"")).unwrap();
            effective::<Cli>(Some(&file)).unwrap().0.options["database"].value.clone().unwrap()
        };
        assert_eq!(shown("postgres://shop:hush@db/sale"), "postgres://shop@db:5432/sale");
        assert_eq!(shown("postgres//shop:hush@db/sale"), HIDDEN);
        assert_eq!(shown("sqlite:a.db"), "sqlite:a.db");
    }

    #[test]
    fn every_option_has_its_variable() {
        for option in options_of(&Cli::command()).unwrap() {
            assert_eq!(option.variable, format!("HOLDFAST_{}", option.key.to_uppercase()));
        }
    }

    #[test]
    fn the_example_file_names_every_option_and_sets_the_defaults() {
        let text = include_str!("../../../deploy/holdfast.toml");
        let file = parse(text).unwrap();
        let (with, _) = effective::<Cli>(Some(&file)).unwrap();
        let (without, _) = effective::<Cli>(None).unwrap();
        for (key, setting) in &without.options {
            assert_eq!(with.options[key].value, setting.value, "{key}");
            let named = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{key} = "));
            assert!(text.lines().any(named), "deploy/holdfast.toml does not mention {key}");
            assert_eq!(file.values.contains_key(key), setting.value.is_some(), "{key}");
        }
    }
}
