package store

import "context"

// CountCrash records that ductor crashed: each update that is not handled, and each turn that runs or ended and is not
// shown, may be why.
func (db *DB) CountCrash(ctx context.Context) error {
	return db.setCrashes(ctx, "count a crash", "crashes + 1")
}

// ForgetCrashes records that what is there is not why ductor crashed.
func (db *DB) ForgetCrashes(ctx context.Context) error {
	return db.setCrashes(ctx, "forget crashes", "0")
}

func (db *DB) setCrashes(ctx context.Context, op, value string) error {
	return wrap(op, db.write.do(ctx, func(t *tx) error {
		if _, err := t.exec(`UPDATE inbox SET crashes = ` + value + ` WHERE handled = 0`); err != nil {
			return err
		}
		_, err := t.exec(`UPDATE turns SET crashes = ` + value + ` WHERE delivered = 0 AND state <> 'queued'`)
		return err
	}))
}
