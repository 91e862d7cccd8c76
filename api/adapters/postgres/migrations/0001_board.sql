CREATE INDEX certificate_passed ON certificate (issued_at, id) WHERE result = 'pass';
--> statement-breakpoint
CREATE INDEX certificate_product_passed ON certificate (product, issued_at, id) WHERE result = 'pass';
--> statement-breakpoint
CREATE INDEX certificate_failed ON certificate (wallet, valid_until) WHERE result = 'fail';
