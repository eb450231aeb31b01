package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

var _ orchestrator.UserStore = (*DB)(nil)

const userColumns = `id, name, role, inviter, joined, greeted`

func scanUser(row sqlite.Row) (u orchestrator.JoinedUser, err error) {
	var role string
	err = row.Scan(&u.ID, &u.Name, &role, &u.By, timeColumn{&u.Joined}, &u.Greeted)
	u.Role, _ = orchestrator.ParseUserRole(role)
	return u, err
}

func (db *DB) JoinedUser(ctx context.Context, id orchestrator.PersonID) (orchestrator.JoinedUser, bool, error) {
	u, err := sqlite.One(ctx, db.file, scanUser, `SELECT `+userColumns+` FROM users WHERE id = ?`, int64(id))
	if errors.Is(err, sql.ErrNoRows) {
		return orchestrator.JoinedUser{}, false, nil
	}
	return u, err == nil, wrap(fmt.Sprintf("find user %d", id), err)
}

func (db *DB) JoinedUsers(ctx context.Context) ([]orchestrator.JoinedUser, error) {
	all, err := sqlite.Many(ctx, db.file, scanUser, `SELECT `+userColumns+` FROM users ORDER BY joined, id`)
	return all, wrap("list users", err)
}

func (db *DB) SetUserRole(
	ctx context.Context, id orchestrator.PersonID, role orchestrator.UserRole, audit orchestrator.AuditEntry,
) (bool, error) {
	return db.changeUser(ctx, "change a user", audit, func(t tx) (int64, error) {
		return t.Exec(`UPDATE users SET role = ? WHERE id = ?`, string(role), int64(id))
	})
}

func (db *DB) RemoveUser(ctx context.Context, id orchestrator.PersonID, audit orchestrator.AuditEntry) (bool, error) {
	return db.changeUser(ctx, fmt.Sprintf("remove user %d", id), audit, func(t tx) (int64, error) {
		n, err := t.Exec(`DELETE FROM users WHERE id = ?`, int64(id))
		if err == nil && n > 0 {
			_, err = t.Exec(`UPDATE jobs SET enabled = 0 WHERE chat = ?`, int64(id))
		}
		return n, err
	})
}

func (db *DB) UserGreeted(ctx context.Context, id orchestrator.PersonID) error {
	return db.exec(ctx, fmt.Sprintf("record that user %d was greeted", id), db.write,
		`UPDATE users SET greeted = 1 WHERE id = ?`, int64(id))
}

// changeUser runs a change and writes its audit entry. If the change affects no row, changeUser writes no audit entry
// and returns false.
func (db *DB) changeUser(
	ctx context.Context, op string, audit orchestrator.AuditEntry, change func(tx) (int64, error),
) (changed bool, err error) {
	err = db.write(ctx, func(t tx) error {
		n, err := change(t)
		if changed = n > 0; err != nil || !changed {
			return err
		}
		return t.audit(audit)
	})
	return changed && err == nil, wrap(op, err)
}

func (db *DB) Invite(ctx context.Context, i orchestrator.Invitation, audit orchestrator.AuditEntry) error {
	return wrap("open an invitation", db.write(ctx, func(t tx) error {
		if _, err := t.Exec(`INSERT INTO invitations (hash, role, inviter, expires) VALUES (?, ?, ?, ?)`,
			blob(i.Hash), string(i.Role), int64(i.By), millis(i.Expires)); err != nil {
			return err
		}
		return t.audit(audit)
	}))
}

// Invitations also deletes expired invitations. If the disk is full, it returns the list without deleting them.
func (db *DB) Invitations(ctx context.Context, at time.Time) ([]orchestrator.Invitation, error) {
	err := db.exec(ctx, "delete expired invitations", db.write,
		`DELETE FROM invitations WHERE expires <= ?`, millis(at))
	if err != nil && !errors.Is(err, orchestrator.ErrDiskFull) {
		return nil, err
	}
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (i orchestrator.Invitation, err error) {
		var role string
		err = row.Scan(&i.Hash, &role, &i.By, timeColumn{&i.Expires})
		i.Role, _ = orchestrator.ParseUserRole(role)
		return i, err
	}, `SELECT hash, role, inviter, expires FROM invitations WHERE expires > ? ORDER BY expires`, millis(at))
	return all, wrap("list invitations", err)
}

func (db *DB) CloseInvitations(ctx context.Context) error {
	return db.exec(ctx, "close invitations", db.write, `DELETE FROM invitations`)
}

func (db *DB) Join(
	ctx context.Context, hash []byte, u orchestrator.JoinedUser, audit orchestrator.AuditEntry,
) (joined bool, err error) {
	return db.changeUser(ctx, "accept an invitation", audit, func(t tx) (int64, error) {
		n, err := t.Exec(`DELETE FROM invitations WHERE hash = ? AND expires > ?`, blob(hash), millis(u.Joined))
		if err == nil && n > 0 {
			_, err = t.Exec(`INSERT OR REPLACE INTO users (`+userColumns+`) VALUES (?, ?, ?, ?, ?, 0)`,
				int64(u.ID), u.Name, string(u.Role), int64(u.By), millis(u.Joined))
		}
		return n, err
	})
}
