package conversation

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/circuit"
	"ductor/orchestrator/conversation/inbox"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/later"
	"ductor/orchestrator/retry"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/side"
	"ductor/orchestrator/spending"
	"ductor/orchestrator/turn"
	"ductor/orchestrator/workplace"
)

// Options configures an Engine. Store, Gateway and Chat are required.
type Options struct {
	Store     orchestrator.Store
	Gateway   orchestrator.Gateway
	Tokens    side.Tokens         // stores the tokens with which users log in agents
	Tracer    orchestrator.Tracer // nil means that turns are not traced
	Chat      orchestrator.Chat
	Viewers   *orchestrator.Viewers   // nil means none
	Orders    orchestrator.OrderStore // if nil, SubmitOrder returns an error
	Snapshots orchestrator.Snapshots  // if nil, file changes are not recorded
	Disk      orchestrator.Disk       // the disk of Store; if nil, failed writes are tried again after a pause
	workplace.Places

	TurnOptions                    // fixed options, if Live is nil
	Live        func() TurnOptions // called for each turn

	Roles       Roles  // nil means none
	Instruction string // added to the system prompt of every turn; may be empty
	// Servers returns ductor's own MCP servers for an agent in a conversation.
	Servers func(in orchestrator.ConversationID, agent orchestrator.AgentEnv) []cli.ToolServer
	// OwnersServers returns the owner's MCP servers for a request, and the servers that the agent cannot use. The
	// function wanted(name) reports whether the turn should have a server. OwnersServers is nil if the owner configured
	// no server.
	OwnersServers func(ctx context.Context, req cli.Request, wanted func(name string) bool) ([]cli.ToolServer,
		[]cli.AbsentServer)
	// Secrets returns the secrets of a directory and of its agents. ductor must not show or store these secrets. The
	// field may be nil.
	Secrets func(dir string) *secrets.Set

	// QuietHour reports whether a time is in the quiet hours. In quiet hours, the message about the end of a turn makes
	// no sound. nil means no quiet hours.
	QuietHour func(at time.Time) bool

	Budgets *spending.Budgets // nil means none

	// Summarizer summarizes history that is too long for a prompt. If it is nil, ductor shortens the history instead.
	// If Summarizer.Model is empty, ductor summarizes only if a user asks for a summary.
	Summarizer *handoff.Summarizer
	Shorten    side.Shortener // shortens long results of jobs
	// DeliveryWait limits how long the next turn waits until the chat shows the outcome of the previous turn. It is
	// also the pause after the first failure to show an outcome or to write to the store.
	DeliveryWait time.Duration
	OnFailure

	// Permits reports whether the user of a turn may still use ductor in the turn's conversation. The Engine calls it
	// right before a waiting turn starts. nil permits every turn.
	Permits func(orchestrator.Turn) bool

	approval.Policy

	Lang *lang.Choices // the languages of messages in each chat

	Now func() time.Time
	// After starts a timer that calls f, and returns a function that stops the timer. If After is nil, ductor uses
	// time.AfterFunc.
	After  func(d time.Duration, f func()) (stop func() bool)
	NewID  func() string
	Logger *slog.Logger
}

// TurnOptions configures how turns run. The options may change while ductor runs. A running turn keeps the options with
// which it started.
type TurnOptions struct {
	Permissions
	turn.Recovery
	Sessions sessions.Policy
	Agents   map[cli.Agent]orchestrator.AgentDefaults
	Projects []orchestrator.ProjectPolicy
	Settings orchestrator.Settings // defaults for the settings of conversations
	LongTurn time.Duration         // a turn that takes longer than this notifies the user; 0 means a minute
	QueueMax int                   // maximum number of waiting turns in a conversation
}

// Permissions configures what agents may do without asking.
type Permissions struct {
	// Mode applies to conversations in which no user chose a mode.
	Mode         cli.PermissionMode `toml:"mode" default:"ask" check:"plan|ask|accept-edits|auto|bypass"`
	AllowedTools []string           `toml:"allowed_tools"`
	DeniedTools  []string           `toml:"denied_tools"`
	AskTimeout   time.Duration      `toml:"ask_timeout" default:"30m" check:"10s..168h" applies:"after a restart"`
	// Approvers selects who decides requests in groups.
	Approvers string `toml:"approvers" default:"sender" check:"sender|members"`
}

func (e *Engine) turns() TurnOptions {
	p := e.opts.TurnOptions
	if e.opts.Live != nil {
		p = e.opts.Live()
	}
	if p.LongTurn <= 0 {
		p.LongTurn = time.Minute
	}
	p.Settings.Notify, p.Settings.Think = cmp.Or(p.Settings.Notify, orchestrator.NotifyLong),
		cmp.Or(p.Settings.Think, orchestrator.ThinkOff)
	p.Settings.Display = cmp.Or(p.Settings.Display, orchestrator.DisplayPlain)
	return p
}

func (e *Engine) turnSettings() turn.Settings {
	now := e.turns()
	return turn.Settings{Agents: now.Agents, HandoffTokens: now.Sessions.HandoffTokens, Recovery: now.Recovery}
}

// OnFailure configures the reaction to a turn that failed before its agent ran anything.
type OnFailure struct {
	// Owner gets the codes for agents' log-ins in a private chat. 0 means that users cannot log in agents from a chat.
	Owner    orchestrator.PersonID
	Jobs     orchestrator.Jobs // creates jobs for LimitWait and ActionLater; nil disables both
	Breakers *circuit.Breakers // pauses agents that fail often; nil means that agents never pause
}

// Roles contains the configured roles. The roles may change at any time. internal/roles implements it.
type Roles interface {
	// Role returns the role with this name, or false.
	Role(name string) (orchestrator.Role, bool)
	// Names lists the names of all roles, sorted.
	Names() []string
}

// Engine runs conversations. It is safe for concurrent use. Conversations do not wait for each other.
type Engine struct {
	orchestrator.Approvals // lets users decide requests of agents
	*side.LoginDesk
	approvals *approval.Service
	runner    *turn.Runner
	opts      Options
	log       *slog.Logger

	life    context.Context // parent of the contexts of all turns; cancelled with ErrShutdown
	endLife context.CancelCauseFunc
	wg      sync.WaitGroup

	mu            sync.Mutex
	conversations map[orchestrator.ConversationID]*conversation
	closed        bool
}

// New creates an Engine. Call Recover to continue the work of the previous process, and Close when ductor ends.
func New(opts Options) *Engine {
	if opts.After == nil {
		opts.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	opts.Chat = turn.QuietChat{Chat: opts.Chat}
	life, end := context.WithCancelCause(context.Background())
	e := &Engine{
		opts: opts, log: opts.Logger,
		life: life, endLife: end,
		conversations: make(map[orchestrator.ConversationID]*conversation),
	}
	e.approvals = approval.New(approval.Options{
		Store: opts.Store, Agents: opts.Gateway, Snapshots: opts.Snapshots, Policy: opts.Policy, Enter: e.enter,
		Now: opts.Now, After: opts.After, NewID: opts.NewID, Logger: opts.Logger,
	})
	e.Approvals = e.approvals
	e.LoginDesk = side.NewLoginDesk(side.LoginOptions{
		Gateway: opts.Gateway, Chat: opts.Chat, Owner: opts.Owner, Tokens: opts.Tokens, Place: e.placeOf, Life: life,
		Client: side.Client{Gateway: opts.Gateway, NewID: opts.NewID, Budgets: opts.Budgets, Secrets: opts.Secrets},
		Enter:  e.enter, Lang: opts.Lang, Log: opts.Logger,
	})
	e.runner = turn.NewRunner(turn.Options{
		Store: opts.Store, Gateway: opts.Gateway, Tracer: opts.Tracer, Snapshots: opts.Snapshots,
		Approvals: e.approvals,
		Breakers:  opts.Breakers, Summarizer: opts.Summarizer, Owner: opts.Owner, Later: opts.Jobs != nil,
		Settings: e.turnSettings, Secrets: e.secretsOf, Project: e.projectOf,
		Life: life, Spawn: e.wg.Go, Lang: opts.Lang, Now: opts.Now, Log: opts.Logger,
	})
	return e
}

func (e *Engine) now() time.Time { return e.opts.Now() }

func (e *Engine) later() later.Prompts { return later.Prompts{Jobs: e.opts.Jobs, Store: e.opts.Store} }

func (e *Engine) retrier() retry.Retrier {
	return retry.Retrier{Disk: e.opts.Disk, Pause: e.opts.DeliveryWait, Life: e.life, Spawn: e.spawn}
}

// Close lets running turns finish, but starts no more turns. When ctx is done, it interrupts the turns that are still
// running, and waits until the chats show that these turns were interrupted. Queued turns stay in the store.
func (e *Engine) Close(ctx context.Context) {
	done := e.shut()
	select {
	case <-done:
	case <-ctx.Done():
		e.endLife(orchestrator.ErrShutdown)
		<-done
	}
	e.endLife(orchestrator.ErrShutdown)
}

// Detach closes the engine for a restart of ductor. It does not end running turns: the agents continue, and the next
// process takes over their turns in Recover. Detach waits until the chats show the current state of the turns, or until
// ctx is done.
func (e *Engine) Detach(ctx context.Context) {
	done := e.shut()
	e.endLife(cli.ErrDetached)
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// shut prevents new turns from starting. The returned channel is closed when no turn is running any more.
func (e *Engine) shut() <-chan struct{} {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	return done
}

// conversation returns a conversation, for a request of a user. It returns an error if the engine is closed.
func (e *Engine) conversation(id orchestrator.ConversationID) (*conversation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, orchestrator.ErrShutdown
	}
	c := e.conversations[id]
	if c == nil {
		shown := make(chan struct{})
		close(shown)
		c = &conversation{e: e, showing: map[cli.TurnID]context.CancelCauseFunc{}, shown: shown}
		c.inbox = inbox.New(c)
		c.at.Store(&id)
		e.conversations[id] = c
	}
	return c, nil
}

// do calls f in the inbox of a conversation, so that nothing else changes the conversation at the same time. It returns
// the error of f, or an error if the engine is closed.
func (e *Engine) do(id orchestrator.ConversationID, f func(*conversation) error) error {
	c, err := e.conversation(id)
	if err != nil {
		return err
	}
	c.do(func(c *conversation) { err = f(c) })
	return err
}

// open reports whether turns may still start. If it returns true, it has called wg.Add, and the caller must call
// wg.Done.
func (e *Engine) open() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.wg.Add(1)
	return true
}

// spawn runs f in a goroutine for which Close waits. If the engine is closed, it runs nothing and returns false.
func (e *Engine) spawn(f func()) bool {
	if !e.open() {
		return false
	}
	go func() {
		defer e.wg.Done()
		f()
	}()
	return true
}

// enter is like open, and also returns the function that the caller must call when its work is done.
func (e *Engine) enter() (leave func(), ok bool) { return e.wg.Done, e.open() }
