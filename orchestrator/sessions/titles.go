package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

const titleLength = 60

// Title returns the title that a session gets from the prompt of a turn. It returns "" if the turn compacts the
// context, or if its prompt has only files.
func Title(t orchestrator.Turn) string {
	if t.Wants.Task == cli.TaskCompact {
		return ""
	}
	return cli.Shorten(strings.Join(strings.Fields(fence.Words(t.Prompt.Text)), " "), titleLength)
}

// Label returns the first words of a turn's prompt. For a turn without such words, it returns the title of the turn's
// card, which may be empty.
func Label(t orchestrator.Turn) string { return cmp.Or(Title(t), t.Wants.Title) }

// Continue prepares a session for its next turn. If the session is archived, Continue restores it, so that /sessions
// lists it again. But the named session of an order (see Wants.Own) stays archived. A session without a title gets the
// title of the turn's prompt.
func Continue(ctx context.Context, in orchestrator.Store, s orchestrator.Session,
	t orchestrator.Turn) (orchestrator.Session, error) {
	if t.Wants.Own == "" {
		var err error
		if s, err = restored(ctx, in.TouchSession, s, t.Queued); err != nil {
			return s, err
		}
	}
	title := Title(t)
	if s.Title != "" && s.Title != formerNoTitle || title == "" {
		return s, nil
	}
	former := s.Title
	s.Title = title
	return s, in.TitleSession(ctx, s.ID, former, title)
}

// formerNoTitle is the title that earlier versions of ductor gave to sessions whose first prompt had no text.
const formerNoTitle = "(files)"

// Titles compares the title of a session with the newest prompts of the session, at most comparedPrompts.
const comparedPrompts = 20

// Titles stores the titles that agents choose for the sessions of one conversation. It is safe for concurrent use. The
// zero value is ready to use.
type Titles struct {
	newest  atomic.Pointer[agentTitle]
	storing sync.Mutex
	stored  agentTitle // the title that was stored last; guarded by storing
}

type agentTitle struct {
	session orchestrator.SessionID
	title   string
}

// Choose records the title that an agent chose during a turn. It returns a function that stores the title, unless a
// user has chosen one, or the agent has chosen a newer one in the meantime. Choose itself does not block.
func (s *Titles) Choose(t orchestrator.Turn, title string) (store func(context.Context, orchestrator.Store) error) {
	now := &agentTitle{t.Session, title}
	s.newest.Store(now)
	return func(ctx context.Context, in orchestrator.Store) error {
		s.storing.Lock()
		defer s.storing.Unlock()
		if newest := s.newest.Load(); newest != now && newest.session == now.session {
			return nil
		}
		return s.store(ctx, in, t, *now)
	}
}

// store stores the agent's title as the title of a session, unless a user has chosen the title. A title comes from a
// user if it is neither an agent's title nor the beginning of a prompt. The caller holds s.storing.
func (s *Titles) store(ctx context.Context, in orchestrator.Store, t orchestrator.Turn, now agentTitle) error {
	session, err := in.Session(ctx, t.Session)
	if err != nil {
		return nil // the turn will report this error
	}
	replaces := slices.Contains([]string{"", formerNoTitle, now.title}, session.Title) ||
		s.stored == agentTitle{t.Session, session.Title}
	if !replaces {
		entries, err := in.History(ctx, t.Session, comparedPrompts)
		if err != nil {
			return err
		}
		replaces = slices.ContainsFunc(append(entries, t), func(t orchestrator.Turn) bool {
			return Title(t) == session.Title
		})
	}
	if !replaces {
		return nil
	}
	if session.Title != now.title {
		err = in.TitleSession(ctx, t.Session, session.Title, now.title)
	}
	if err == nil {
		s.stored = now
	}
	return err
}
