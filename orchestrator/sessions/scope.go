package sessions

import (
	"context"
	"errors"
	"slices"

	"ductor/orchestrator"
)

// Access contains functions with which a Book finds out who may read which sessions. All fields are required.
type Access struct {
	// RoleOf returns the current role of a user.
	RoleOf func(user orchestrator.PersonID) orchestrator.UserRole
	// Groups lists the groups in which ductor may work now.
	Groups func() []int64
	// Shared returns the directories of the projects that share their sessions: every group can read these sessions,
	// even those from other chats. It also returns the directories of all other projects.
	Shared func() (shared, others []string)
}

// Scope implements orchestrator.Sessions. In a private chat, a turn can read the sessions of the chat and of all groups
// in which the user has written. In a group, it can read the sessions of the group.
func (b *Book) Scope(ctx context.Context, t orchestrator.Turn) (orchestrator.SessionScope, error) {
	in, user := t.Prompt.Conversation, t.Prompt.Person
	scope := orchestrator.SessionScope{Conversation: in}
	private := in.Chat == int64(user)
	if t.Prompt.Rights.Of != orchestrator.RightsOfChat || orchestrator.IsJobTurn(t.ID) || !private && !in.Group() ||
		!b.opts.Access.RoleOf(user).May(orchestrator.Read) {
		return scope, nil
	}
	chats, err := b.opts.Store.GroupsOf(ctx, user)
	if err != nil {
		return scope, err
	}
	open := b.opts.Access.Groups()
	chats = slices.DeleteFunc(chats, func(chat int64) bool { return !slices.Contains(open, chat) })
	chats = append(chats, int64(user))
	if private {
		scope.Chats = chats
		return scope, nil
	}
	scope.Chats, scope.Shared = []int64{in.Chat}, chats
	scope.Dirs, scope.Except = b.opts.Access.Shared()
	return scope, nil
}

// Seen implements orchestrator.Sessions.
func (b *Book) Seen(ctx context.Context, scope orchestrator.SessionScope, idOrName string) (orchestrator.Session,
	error) {
	s, err := orchestrator.FindSession(ctx, b.opts.Store, scope.Conversation, idOrName)
	if !errors.Is(err, orchestrator.ErrNoSession) {
		return s, err
	}
	id := orchestrator.SessionID(idOrName)
	found, _, err := b.opts.Store.FindSessions(ctx, orchestrator.SessionQuery{Conversation: scope.Conversation,
		Scope: scope, ID: id, Limit: 1})
	if err == nil && len(found) == 0 {
		err = orchestrator.ErrNoSession
	}
	if err != nil {
		return orchestrator.Session{}, err
	}
	return found[0].Session, nil
}
