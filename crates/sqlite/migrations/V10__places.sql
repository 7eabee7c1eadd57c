-- What a campaign offers besides its pools: its location order and its bundles, as JSON; none was never set.
ALTER TABLE campaign ADD COLUMN assortment TEXT;
-- The pool into which stock goes that is not sold when the campaign is closed, or comes back later.
ALTER TABLE campaign ADD COLUMN unsold_to BLOB CHECK (unsold_to IS NULL OR length(unsold_to) = 16);
CREATE INDEX campaign_unsold ON campaign (id) WHERE unsold_to IS NOT NULL;
-- When it was last asked that nodes warm up for the campaign: those that were not asked themselves see it here.
ALTER TABLE campaign ADD COLUMN warm_asked_at INTEGER;
