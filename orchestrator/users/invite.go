package users

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"ductor/internal/paircode"
	"ductor/orchestrator"
)

const mostOpen = 5

// invitations contains the open invitations. They are read from the store only once, so only one process may create
// invitations.
type invitations struct {
	sync.Mutex
	all   []orchestrator.Invitation
	wrong int // number of wrong codes so far; set to 0 when an invitation is created while no other one is open
}

// Invite creates an invitation for one user and returns its code. The code itself is not stored. Invite may return
// ErrNotAllowed.
func (d *Directory) Invite(ctx context.Context, by orchestrator.Press, role orchestrator.UserRole) (code string,
	err error) {
	if !by.May(orchestrator.ManageUsers) {
		return "", orchestrator.ErrNotAllowed
	}
	if code, err = paircode.New(d.opts.Random); err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(code))
	i := orchestrator.Invitation{Hash: hash[:], Role: role, By: by.Person, Expires: d.opts.Now().Add(paircode.Life)}
	if err := d.opts.Store.Invite(ctx, i, d.entry(by, "invite", string(role))); err != nil {
		return "", err
	}
	d.open.Lock()
	defer d.open.Unlock()
	if d.expire(); len(d.open.all) == 0 {
		d.open.wrong = 0
	}
	d.open.all = append(d.open.all, i)
	d.open.all = d.open.all[max(len(d.open.all)-mostOpen, 0):] // remove the oldest invitations beyond mostOpen
	return code, nil
}

// expire removes expired invitations. The caller holds the lock.
func (d *Directory) expire() {
	now := d.opts.Now()
	d.open.all = slices.DeleteFunc(d.open.all, func(i orchestrator.Invitation) bool { return !now.Before(i.Expires) })
}

// Join implements updates.Joins. It does nothing if there is no open invitation, or if the text does not look like a
// code. An invitation is invalid if its inviter may no longer manage users. After paircode.MostWrong wrong codes, it closes all invitations.
func (d *Directory) Join(ctx context.Context, id orchestrator.PersonID, name, code string) bool {
	if !paircode.Shaped(code) {
		return false
	}
	i, ok := d.match(ctx, code)
	if !ok || !d.RoleOf(i.By).May(orchestrator.ManageUsers) {
		return false
	}
	u := orchestrator.JoinedUser{ID: id, Name: name, Role: i.Role, By: i.By, Joined: d.opts.Now()}
	joined, err := d.opts.Store.Join(ctx, i.Hash, u,
		d.entry(orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: int64(id)}, Person: id},
			"join", idText(id), string(i.Role), name))
	if err != nil {
		d.opts.Log.Error("accept an invitation", "user", id, "err", err)
		return false
	}
	d.open.Lock()
	defer d.open.Unlock()
	d.open.all = slices.DeleteFunc(d.open.all, func(o orchestrator.Invitation) bool {
		return string(o.Hash) == string(i.Hash)
	})
	if joined {
		d.opts.Log.Info("a user joined", "user", id, "name", name, "role", i.Role, "invited_by", i.By)
	}
	return joined
}

// match returns the open invitation with this code. It compares the code with all open invitations, so that an attacker
// learns nothing from the time that it takes.
func (d *Directory) match(ctx context.Context, code string) (found orchestrator.Invitation, ok bool) {
	d.open.Lock()
	defer d.open.Unlock()
	if d.expire(); len(d.open.all) == 0 {
		return found, false
	}
	hash := sha256.Sum256([]byte(code))
	for _, i := range d.open.all {
		if paircode.Same(string(i.Hash), string(hash[:])) {
			found, ok = i, true
		}
	}
	if ok {
		return found, true
	}
	if d.open.wrong++; d.open.wrong >= paircode.MostWrong {
		d.open.all = nil
		err := d.opts.Store.CloseInvitations(ctx)
		d.opts.Log.Warn("too many wrong codes; all invitations are closed", "err", err)
	}
	return found, false
}

// Greet returns a user who joined, but to whom ductor has not sent the welcome message yet. It returns false for any
// other user.
func (d *Directory) Greet(ctx context.Context, id orchestrator.PersonID) (orchestrator.JoinedUser, bool, error) {
	u, there, err := d.opts.Store.JoinedUser(ctx, id)
	return u, there && !u.Greeted, err
}

// Greeted records that a user has got the welcome message.
func (d *Directory) Greeted(ctx context.Context, id orchestrator.PersonID) error {
	return d.opts.Store.UserGreeted(ctx, id)
}
