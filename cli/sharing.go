package cli

import "context"

// Sharer is a Provider whose sessions may share a process.
type Sharer interface {
	// Shares is the number of the process that a session for req would be put into by Open; 0 if Open would
	// start one, or if that is not known yet. It does not wait.
	Shares(req Request) int
}

// Keeper is a Provider whose sessions may share a process, and that can take over such a process from an earlier
// ductor while nothing runs in it, for the sessions that Open will put into it.
type Keeper interface {
	// Keep takes over a run that rests; see LeftRun.Rested. Sessions that were in it are opened in it anew, by
	// Request.Resume. It refuses a process that Open would not start like this now, such as one of another version,
	// and one beside which there is another that takes the same sessions. The caller ends what is refused.
	Keep(ctx context.Context, left LeftRun) (Kept, error)
}

// Kept is a process that is kept for sessions to come. It lives until it is closed and no session is in it. Its
// functions are safe for concurrent use; either Close or Detach is called, once.
type Kept struct {
	PID   int
	Alive func() bool // it can take a session
	// Close closes the process for good: it ends, with all it started, unless sessions are in it.
	Close func(ctx context.Context) error
	// Detach detaches from the process, which goes on, together with the sessions in it.
	Detach func()
}
