package users

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Options configures a Directory. All fields except Random and Log are required. Random is necessary for Invite.
type Options struct {
	Store      orchestrator.UserStore
	Configured func() orchestrator.Roster // users in the current configuration
	Now        func() time.Time
	Random     io.Reader
	Log        *slog.Logger
}

// Directory knows all users of ductor and their roles. It reads the store for each query, because another process may
// have changed the users. It is safe for concurrent use.
type Directory struct {
	opts  Options
	known cache
	open  invitations
}

// cache contains the data that was last read from the store. The Directory uses it if the store returns an error or is
// too slow.
type cache struct {
	sync.Mutex
	roles orchestrator.Roster
}

// Open creates a Directory and loads the open invitations.
func Open(ctx context.Context, o Options) (*Directory, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Directory{opts: o, known: cache{roles: orchestrator.Roster{}}}
	joined, err := o.Store.JoinedUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the users: %w", err)
	}
	for _, u := range joined {
		d.known.roles[u.ID] = u.Role
	}
	if d.open.all, err = o.Store.Invitations(ctx, o.Now()); err != nil {
		return nil, fmt.Errorf("open the users: %w", err)
	}
	return d, nil
}

// lookPatience limits how long a query waits for the store.
const lookPatience = 5 * time.Second

// RoleOf implements updates.Users. A role in the configuration takes precedence over one in the store.
func (d *Directory) RoleOf(user orchestrator.PersonID) orchestrator.UserRole {
	if role, ok := d.opts.Configured()[user]; ok {
		return role
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	u, there, err := d.opts.Store.JoinedUser(ctx, user)
	d.known.Lock()
	defer d.known.Unlock()
	switch {
	case err != nil:
		d.opts.Log.Error("look up a user; the last known role counts", "user", user, "err", err)
	case there:
		d.known.roles[user] = u.Role
	default:
		delete(d.known.roles, user)
	}
	return d.known.roles.RoleOf(user)
}

// Having returns the users who have a right, sorted by ID.
func (d *Directory) Having(do orchestrator.Right) []orchestrator.PersonID {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	all, err := d.List(ctx)
	if err != nil {
		d.opts.Log.Error("list the users; only the configuration counts", "err", err)
		return d.opts.Configured().Having(do)
	}
	roles := orchestrator.Roster{}
	for _, u := range all {
		roles[u.ID] = u.Role
	}
	return roles.Having(do)
}

// Known is a user of ductor, from the configuration or from the store.
type Known struct {
	orchestrator.JoinedUser
	Configured bool // the user is in the configuration and can only be changed there
}

// List lists all users: first those in the configuration, sorted by ID, then those who accepted an invitation.
func (d *Directory) List(ctx context.Context) ([]Known, error) {
	configured := d.opts.Configured()
	var all []Known
	for _, id := range slices.Sorted(maps.Keys(configured)) {
		all = append(all, Known{orchestrator.JoinedUser{ID: id, Role: configured[id], Greeted: true}, true})
	}
	joined, err := d.opts.Store.JoinedUsers(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range joined {
		if _, ok := configured[u.ID]; !ok {
			all = append(all, Known{u, false})
		}
	}
	return all, nil
}

// checkChange returns an error if the user who pressed must not change users, or if the user with the given ID is in
// the configuration.
func (d *Directory) checkChange(by orchestrator.Press, id orchestrator.PersonID) error {
	if !by.May(orchestrator.ManageUsers) {
		return orchestrator.ErrNotAllowed
	}
	if _, ok := d.opts.Configured()[id]; ok {
		return orchestrator.ErrConfigured
	}
	return nil
}

// SetRole changes the role of a user who accepted an invitation. It may return ErrNotAllowed, ErrConfigured or
// ErrNoUser.
func (d *Directory) SetRole(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID,
	role orchestrator.UserRole) error {
	if err := d.checkChange(by, id); err != nil {
		return err
	}
	return found(d.opts.Store.SetUserRole(ctx, id, role, d.entry(by, "role", idText(id), string(role))))
}

// Remove deletes a user who accepted an invitation. It may return ErrNotAllowed, ErrConfigured or ErrNoUser.
func (d *Directory) Remove(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID) error {
	if err := d.checkChange(by, id); err != nil {
		return err
	}
	return found(d.opts.Store.RemoveUser(ctx, id, d.entry(by, "remove", idText(id))))
}

func found(there bool, err error) error {
	if err == nil && !there {
		return orchestrator.ErrNoUser
	}
	return err
}

func idText(id orchestrator.PersonID) string { return strconv.FormatInt(int64(id), 10) }

func (d *Directory) entry(by orchestrator.Press, what string, of ...string) orchestrator.AuditEntry {
	return orchestrator.AuditEntry{At: d.opts.Now(), What: orchestrator.AuditUser, Conversation: by.Conversation,
		By: by.Person, Tool: what, Title: strings.Join(of, ", ")}
}
