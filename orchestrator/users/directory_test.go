package users_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/paircode"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/users"
)

const (
	owner = 7
	ann   = 20
	bob   = 21
)

var asOwner = orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: owner}, Person: owner, Role: orchestrator.RoleOwner}

type rig struct {
	*users.Directory
	t   *testing.T
	db  *store.DB
	now time.Time
}

func newRig(t *testing.T) *rig {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ductor.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &rig{t: t, db: db, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	r.restart()
	return r
}

// restart creates a new Directory over the same database.
func (r *rig) restart() {
	r.t.Helper()
	d, err := users.Open(r.t.Context(), users.Options{
		Store: r.db, Configured: func() orchestrator.Roster { return orchestrator.Roster{owner: orchestrator.RoleOwner} },
		Now: func() time.Time { return r.now }, Random: rand.NewChaCha8([32]byte{1, byte(r.now.Second())}),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Directory = d
}

func (r *rig) invite(role orchestrator.UserRole) string {
	r.t.Helper()
	code, err := r.Invite(r.t.Context(), asOwner, role)
	if err != nil || !paircode.Shaped(code) {
		r.t.Fatalf("the code is %q, %v", code, err)
	}
	return code
}

func (r *rig) has(user orchestrator.PersonID, want orchestrator.UserRole) {
	r.t.Helper()
	if got := r.RoleOf(user); got != want {
		r.t.Errorf("%d is %s, want %s", user, got, want)
	}
}

func TestAnInvitationIsOfOneUse(t *testing.T) {
	r := newRig(t)
	code := r.invite(orchestrator.RoleViewer)
	if r.Join(t.Context(), ann, "Ann", strings.Repeat("A", 12)) {
		t.Error("a guessed code was taken")
	}
	if !r.Join(t.Context(), ann, "Ann", code) {
		t.Fatal("the code was not taken")
	}
	r.has(ann, orchestrator.RoleViewer)
	if r.Join(t.Context(), bob, "Bob", code) {
		t.Error("the code was taken twice")
	}
	r.has(bob, orchestrator.RoleNone)
	r.restart()
	if r.Join(t.Context(), bob, "Bob", code) {
		t.Error("the code was taken twice, after a restart")
	}
	r.has(ann, orchestrator.RoleViewer)
	u, fresh, err := r.Greet(t.Context(), ann)
	if err != nil || !fresh || u.Name != "Ann" || u.By != owner {
		t.Errorf("to greet is %+v, %v, %v", u, fresh, err)
	}
	if err := r.Greeted(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := r.Greet(t.Context(), ann); fresh || err != nil {
		t.Errorf("she is greeted again: %v", err)
	}
}

func TestAnInvitationExpires(t *testing.T) {
	r := newRig(t)
	code := r.invite(orchestrator.RoleUser)
	r.restart() // it survives the process
	r.now = r.now.Add(paircode.Life)
	if r.Join(t.Context(), ann, "Ann", code) {
		t.Error("it was taken after its time")
	}
	r.restart()
	r.now = r.now.Add(-time.Second)
	if r.Join(t.Context(), ann, "Ann", code) {
		t.Error("it was taken after it was forgotten")
	}
	r.has(ann, orchestrator.RoleNone)
}

func TestAnInvitationOutlivesARestart(t *testing.T) {
	r := newRig(t)
	code := r.invite(orchestrator.RoleOwner)
	r.restart()
	if !r.Join(t.Context(), ann, "Ann", code) {
		t.Error("it was not taken")
	}
	r.has(ann, orchestrator.RoleOwner)
	if got := r.Having(orchestrator.ManageUsers); len(got) != 2 || got[0] != owner || got[1] != ann {
		t.Errorf("those who manage users are %v", got)
	}
}

// The invitations of a user who may no longer manage users are invalid, also for this user.
func TestAnInvitationNeedsItsInviter(t *testing.T) {
	for name, end := range map[string]func(r *rig) error{
		"removed":    func(r *rig) error { return r.Remove(r.t.Context(), asOwner, ann) },
		"a user now": func(r *rig) error { return r.SetRole(r.t.Context(), asOwner, ann, orchestrator.RoleUser) },
		"removed by the command": func(r *rig) error { // in another process, on the same database
			_, err := r.db.RemoveUser(r.t.Context(), ann, orchestrator.AuditEntry{At: r.now, What: orchestrator.AuditUser})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Join(t.Context(), ann, "Ann", r.invite(orchestrator.RoleOwner))
			byAnn := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: ann}, Person: ann, Role: orchestrator.RoleOwner}
			code, err := r.Invite(t.Context(), byAnn, orchestrator.RoleOwner)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(r); err != nil {
				t.Fatal(err)
			}
			before := r.RoleOf(ann)
			for _, user := range []orchestrator.PersonID{ann, bob} {
				if r.Join(t.Context(), user, "X", code) {
					t.Errorf("%d joined", user)
				}
			}
			r.has(ann, before)
			r.has(bob, orchestrator.RoleNone)
		})
	}
}

func TestTooManyWrongCodesCloseAllInvitations(t *testing.T) {
	r := newRig(t)
	code := r.invite(orchestrator.RoleUser)
	for range paircode.MostWrong {
		// Does not have the shape of a code, so it does not count as a try.
		r.Join(t.Context(), bob, "Bob", "hello, you")
	}
	for range paircode.MostWrong {
		r.Join(t.Context(), bob, "Bob", strings.Repeat("B", 12))
	}
	if r.Join(t.Context(), ann, "Ann", code) {
		t.Error("it was taken after too many tries")
	}
	r.restart()
	if r.Join(t.Context(), ann, "Ann", code) {
		t.Error("it was taken after too many tries and a restart")
	}
	if again := r.invite(orchestrator.RoleUser); !r.Join(t.Context(), ann, "Ann", again) {
		t.Error("a new invitation was not taken")
	}
}

func TestOnlyOwnersManageUsers(t *testing.T) {
	r := newRig(t)
	r.Join(t.Context(), ann, "Ann", r.invite(orchestrator.RoleUser))
	for _, role := range []orchestrator.UserRole{orchestrator.RoleUser, orchestrator.RoleViewer, orchestrator.RoleMember, orchestrator.RoleNone} {
		by := orchestrator.Press{Person: ann, Role: role}
		_, invited := r.Invite(t.Context(), by, orchestrator.RoleOwner)
		for what, err := range map[string]error{
			"invite": invited, "role": r.SetRole(t.Context(), by, ann, orchestrator.RoleOwner), "remove": r.Remove(t.Context(), by, ann),
		} {
			if !errors.Is(err, orchestrator.ErrNotAllowed) {
				t.Errorf("%s by %s: %v", what, role, err)
			}
		}
	}
	r.has(ann, orchestrator.RoleUser)
	for what, do := range map[string]func(context.Context, orchestrator.Press, orchestrator.PersonID) error{
		"remove": r.Remove, "role": func(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID) error {
			return r.SetRole(ctx, by, id, orchestrator.RoleViewer)
		},
	} {
		if err := do(t.Context(), asOwner, owner); !errors.Is(err, orchestrator.ErrConfigured) {
			t.Errorf("%s a user of the configuration: %v", what, err)
		}
		if err := do(t.Context(), asOwner, 99); !errors.Is(err, orchestrator.ErrNoUser) {
			t.Errorf("%s an unknown user: %v", what, err)
		}
	}
	if err := r.SetRole(t.Context(), asOwner, ann, orchestrator.RoleViewer); err != nil {
		t.Error(err)
	}
	r.has(ann, orchestrator.RoleViewer)
	if err := r.Remove(t.Context(), asOwner, ann); err != nil {
		t.Error(err)
	}
	r.has(ann, orchestrator.RoleNone)
}

// Changes by another process in the database apply at once. While the store does not answer, the last known state
// applies.
func TestTheStoreCountsAtOnce(t *testing.T) {
	r := newRig(t)
	r.Join(t.Context(), ann, "Ann", r.invite(orchestrator.RoleUser))
	if _, err := r.db.SetUserRole(t.Context(), ann, orchestrator.RoleViewer, orchestrator.AuditEntry{What: orchestrator.AuditUser}); err != nil {
		t.Fatal(err)
	}
	r.has(ann, orchestrator.RoleViewer)
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}
	r.has(ann, orchestrator.RoleViewer)
	r.has(bob, orchestrator.RoleNone)
	r.has(owner, orchestrator.RoleOwner)
}
