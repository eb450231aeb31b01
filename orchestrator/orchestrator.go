package orchestrator

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
)

// Options configure an Orchestrator. Store, Gateway and Chat are required.
type Options struct {
	Store   Store
	Gateway Gateway
	Chat    Chat
	Orders  OrderStore // nil: SubmitOrder takes none
	Disk    Disk       // under Store; nil: unknown, and what it does not take is tried again after a while
	// Sandboxes says where agents run; nil: on this host, and an order that asks for a sandbox is refused.
	Sandboxes Sandboxes

	Permission   cli.PermissionMode // for conversations that chose none
	AllowedTools []string
	DeniedTools  []string
	Agents       map[cli.Agent]AgentDefaults
	Dir          string          // for conversations that chose none; absolute
	Roots        []string        // directories /cwd may enter, with all below them; absolute
	Roles        map[string]Role // by name
	DefaultRole  string
	UploadsDir   string // has a folder for each conversation, which its agent may read; empty for none
	// Protected are ductor's own files and directories, absolute and with links resolved. No rule allows a request that
	// touches one of them: a user decides.
	Protected []string
	// Secrets are what agents that work in a directory must not have shown or stored; nil for nothing.
	Secrets func(dir string) *secrets.Set

	QueueMax     int           // turns waiting per conversation
	HistoryTurns int           // turns handed to an agent that joins a session
	HistoryBytes int           // and their size at most
	IdleReset    time.Duration // a session unused for so long is not resumed; 0 is never
	DailyReset   string        // "04:00": a session used before that time today is not resumed; "" is never
	// DeliveryWait is how long the next turn waits for the chat to show the one before, and the first pause before
	// an outcome that could not be shown or stored is tried again.
	DeliveryWait time.Duration

	// Asks shows what agents ask. Nil: no user is asked, and what they would ask for is denied.
	Asks Asks
	// Approvers says who decides what the turn of a person asks for in a group. Nil: that person. In a private
	// chat it is always the one person there.
	Approvers  func(in ConversationID, approvals PersonID) []PersonID
	AskTimeout time.Duration // what is not decided in time is denied; DefaultAskTimeout when 0

	Now func() time.Time
	// After calls f once, after d; the function it returns stops that. time.AfterFunc when nil.
	After  func(d time.Duration, f func()) (stop func() bool)
	Random io.Reader // of what must not be guessed; crypto/rand when nil
	NewID  func() string
	Logger *slog.Logger
}

// DefaultAskTimeout is how long people have to decide.
const DefaultAskTimeout = 30 * time.Minute

// AgentDefaults are what an agent is given when neither the conversation nor its role says otherwise.
type AgentDefaults struct {
	Model  cli.ModelID
	Effort cli.Effort
	Args   []string // added to its command line
}

// Orchestrator runs conversations. Safe for concurrent use; different conversations never wait for each other.
type Orchestrator struct {
	opts Options
	now  func() time.Time
	log  *slog.Logger

	life context.Context // of every turn; cancelled with ErrShutdown
	end  context.CancelCauseFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	lines     map[ConversationID]*line
	approvals map[cli.TurnID]*approvals // of the turns that run
	closed    bool
}

// New makes an Orchestrator. Recover starts what was left over from before; Close ends it.
func New(opts Options) *Orchestrator {
	if opts.AskTimeout <= 0 {
		opts.AskTimeout = DefaultAskTimeout
	}
	if opts.After == nil {
		opts.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	opts.Chat = quietChat{opts.Chat}
	life, end := context.WithCancelCause(context.Background())
	return &Orchestrator{
		opts: opts, now: opts.Now, log: opts.Logger,
		life: life, end: end,
		lines: make(map[ConversationID]*line), approvals: make(map[cli.TurnID]*approvals),
	}
}

// Close stops taking turns from the queues, gives running ones until ctx ends to finish, then interrupts
// them and waits until their conversations were told. Queued turns stay queued in the store.
func (o *Orchestrator) Close(ctx context.Context) {
	done := o.shut()
	select {
	case <-done:
	case <-ctx.Done():
		o.end(ErrShutdown)
		<-done
	}
	o.end(ErrShutdown)
}

// Detach is Close for a restart: it detaches what runs at once, which goes on,
// for Recover of the next one to take up. It waits for the chat to show how far the turns are until ctx ends.
func (o *Orchestrator) Detach(ctx context.Context) {
	done := o.shut()
	o.end(cli.ErrDetached)
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// shut takes no more turns. The channel is closed when those that run are over.
func (o *Orchestrator) shut() <-chan struct{} {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	done := make(chan struct{})
	go func() { o.wg.Wait(); close(done) }()
	return done
}

// line gives the queue of a conversation, made at need. It fails once the orchestrator is closed.
func (o *Orchestrator) line(id ConversationID) (*line, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, ErrShutdown
	}
	l := o.lines[id]
	if l == nil {
		l = &line{id: id}
		o.lines[id] = l
	}
	return l, nil
}

func (o *Orchestrator) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// open says whether turns may still start, and counts the caller's goroutine if so.
func (o *Orchestrator) open() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.wg.Add(1)
	return true
}
