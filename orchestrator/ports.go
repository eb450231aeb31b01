package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// Store keeps what must survive. internal/store implements it over SQLite.
//
// Every method is one transaction and durable when it returns. Errors are wrapped and final: the caller
// does not retry. Safe for concurrent use.
type Store interface {
	ApprovalStore
	QueueStore
	StepStore

	// Conversation returns what a chat chose; a chat that chose nothing gives a zero Conversation with its ID.
	Conversation(ctx context.Context, id ConversationID) (Conversation, error)
	// SaveConversation stores all of c, and audits the change, both or neither.
	SaveConversation(ctx context.Context, c Conversation, audit ...AuditEntry) error

	// MoveChat has what is stored of a group follow it to its new id: sessions, choices, rules, schedules, history. What was chosen
	// under the new id before stays.
	MoveChat(ctx context.Context, from, to int64) error

	// EndBypasses has every conversation in bypass ask again, audits that and returns them.
	EndBypasses(ctx context.Context, at time.Time) ([]ConversationID, error)

	// CreateSession stores s and makes it the current one of its conversation.
	CreateSession(ctx context.Context, s Session) error
	// Session returns ErrNoSession for an id that is not there.
	Session(ctx context.Context, id SessionID) (Session, error)
	// MoveSession moves a session to another conversation; see SessionStore.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// TouchSession records that a session was used; ErrNoSession for one that is not there.
	TouchSession(ctx context.Context, id SessionID, at time.Time) error
	// SetAgentSession records the own id of an agent in an environment for a session; an empty id forgets it.
	SetAgentSession(ctx context.Context, id SessionID, of AgentEnv, own cli.AgentSessionID) error
	// SetTold records the last turn of a session that an agent knows; see AgentSession. An agent without an own id there knows none.
	SetTold(ctx context.Context, id SessionID, of AgentEnv, turn cli.TurnID) error

	// EnqueueTurn stores a queued turn and marks its prompt's updates handled, both or neither, and with them forgets
	// the own ids of some agents for its session. ErrRepeated when it repeats a turn that was repeated before: nothing is
	// stored then.
	EnqueueTurn(ctx context.Context, t Turn, forget ...AgentEnv) error
	// Unrepeated gives ErrRepeated if a turn repeats this one.
	Unrepeated(ctx context.Context, id cli.TurnID) error
	// UpdatePrompt changes the prompt of a queued turn; false if it is no longer queued.
	UpdatePrompt(ctx context.Context, id cli.TurnID, text string, files []Attachment) (bool, error)
	// StartTurn moves a queued turn to running and stores where it begins, or again where a running one does; false for any
	// other. It need not outlive a power failure.
	StartTurn(ctx context.Context, t Turn, at cli.Start) (bool, error)
	// FinishTurn records the outcome of a running turn, or of one that was steered and is not delivered, and adds its cost, tokens and message to its session.
	FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o Outcome) error
	// AbortTurns records that a running turn is to end, so that the next process ends it should this one die
	// before, and moves queued ones to cancelled, all or none. Those that are no longer so are passed over;
	// running may be empty, or one that StartTurn is yet to come for. What is running need not outlive a power failure.
	// The updates of the abort are handled with it.
	AbortTurns(ctx context.Context, running cli.TurnID, queued []cli.TurnID, handled Handled) error
	// CancelTurn moves a queued turn to cancelled, or one that was steered and is not delivered; false if it is neither.
	CancelTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// ExtendAnswer adds a text to the end of the answer of a turn that has ended, and returns the turn.
	ExtendAnswer(ctx context.Context, id cli.TurnID, text string) (Turn, error)
	// AmendOutcome stores an outcome that differs in what the turn changed from that of FinishTurn.
	AmendOutcome(ctx context.Context, id cli.TurnID, o Outcome) error
	// MarkDelivered records that the chat shows the outcome.
	MarkDelivered(ctx context.Context, id cli.TurnID) error
	// Turn returns ErrNoTurn for an id that is not there.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
	// OpenTurns lists turns that are queued, running, or ended but not delivered, oldest first.
	OpenTurns(ctx context.Context) ([]Turn, error)
	// TurnsShownWaiting lists turns that no longer wait, and of which a chat still shows that they do.
	TurnsShownWaiting(ctx context.Context) ([]Turn, error)
	// RunningTurns lists the turns that run, and those after which an agent worked in the background.
	RunningTurns(ctx context.Context) ([]cli.OpenTurn, error)
	// EndBackground forgets that an agent works in the background of a run, which is gone.
	EndBackground(ctx context.Context, run cli.RunID) error
	// History lists the last ended turns of a session, oldest first.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
}

// Gateway runs turns. *service.Service implements it.
type Gateway interface {
	// Run runs one turn of req by agent; see service.Service.
	Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	// Survey says what is left of turns that the previous process was running; see service.Service.
	Survey(ctx context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error)
	// Resume continues a turn that Survey found a run of; see service.Service.
	Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	// Settled says that the outcome of a turn is recorded.
	Settled(turn cli.TurnID)
	// Decide hands a decision to the agent of a turn that runs; cli.ErrNotAsked if nothing of this id waits.
	Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	// Bring copies files of this host into a sandbox; see service.Service.
	Bring(ctx context.Context, in cli.Sandbox, files []string) error
	// Steer adds req's prompt to a turn that runs; cli.ErrNoTurn if none takes it, errors.ErrUnsupported if
	// the agent never does. After any other error it is unknown whether it arrived.
	Steer(ctx context.Context, turn cli.TurnID, req cli.Request) error
	// SetPermission has the agent of a turn that runs work in another mode from now on; see service.Service.
	SetPermission(ctx context.Context, turn cli.TurnID, mode cli.PermissionMode) error
	// Abort ends what runs for a conversation, with everything it started; false if nothing ran.
	Abort(conversation cli.Conversation) bool
	// Outliving gives what names the processes of a turn that runs, and those that outlive it; see service.Service.
	Outliving(turn cli.TurnID) func(ctx context.Context) []cli.ProcessName
	// Release closes the idle session kept for a conversation, if there is one, without waiting for it.
	Release(conversation cli.Conversation)
	// Warm opens the session that req will want ahead of its turn, if there is room, and returns at once.
	Warm(agent cli.Agent, req cli.Request)
	// Live says which agents run, and what they hold.
	Live(ctx context.Context) cli.Living
	// ProjectFields says what the project in a directory sets for an agent; see service.Service.
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
	// ShowSkill adds to a request for a skill what that does; see service.Service.
	ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked
	// Cannot says in one sentence what of a permission mode an agent does not do in a place; empty if nothing is known.
	Cannot(in cli.Sandbox, agent cli.Agent, mode cli.PermissionMode) string
	// CannotHold says why an agent cannot be held to the tool lists of a request; empty if it can.
	CannotHold(agent cli.Agent, req cli.Request) string
	// Fill is how full the context of a session is, and of what; see service.Service.
	Fill(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) (cli.Fill, error)
	// Commands lists the commands and skills of an agent; see service.Service.
	Commands(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) ([]cli.AgentCommand, error)
	// Menu says for each agent of a place whether it can be used, and which models it has.
	Menu(ctx context.Context, in cli.Sandbox, only ...cli.Agent) []cli.MenuEntry
	// Default is the agent to use in a place when a conversation chose none: the configured one if it can be used. Otherwise
	// instead says why it cannot.
	Default(ctx context.Context, in cli.Sandbox) (agent cli.Agent, instead *cli.Failure, err error)
	// CanLogIn says whether an agent of a place can be logged in from another device.
	CanLogIn(in cli.Sandbox, agent cli.Agent) bool
	// LogIn logs it in: show gets where the user enters which code. It returns once the agent is logged in, or with why it is not.
	LogIn(ctx context.Context, in cli.Sandbox, agent cli.Agent, show func(cli.DeviceCode)) error
	// Substitute returns an agent of a place that can be used and is none of others. It returns "" if there is none. configured
	// reports whether the configuration names it as a substitute.
	Substitute(ctx context.Context, in cli.Sandbox, others []cli.Agent) (agent cli.Agent, configured bool)
}

// Tracer follows the turns of agents for monitors. internal/trace implements it.
type Tracer interface {
	// Begin follows a turn from now on.
	Begin(agent cli.Agent, req cli.Request) TurnTrace
}

// TurnTrace follows one turn of an agent. Its caller serializes the calls.
type TurnTrace interface {
	// Take takes an event of the turn.
	Take(ev cli.Event)
	// End takes the result of the turn.
	End(r cli.Result)
}

// Chat shows turns to people. Package bot implements it.
type Chat interface {
	// Card opens the message that grows for a turn. It sends nothing yet, and does not block.
	Card(t Turn) Card
	// Reopen is Card for a turn that the previous process was showing: the card goes on in the messages it has.
	// What happened so far is told again by Show, from the turn's beginning up to cli.CaughtUp; it is shown
	// in one go then.
	Reopen(ctx context.Context, t Turn) Card
	// Queued shows that a turn waits, and how many are ahead of it. It does not wait for the network, and is
	// called before Unqueued.
	Queued(t Turn, ahead int)
	// Unqueued removes what Queued showed: the turn runs now, or was cancelled.
	Unqueued(t Turn)
	// Redeliver shows the outcome of a turn that ended before the chat showed it whole, or that was
	// interrupted. It returns when the chat shows it or was told that it may not; after an error it may be called again.
	Redeliver(ctx context.Context, t Turn) error
	// ShowAgain sends the outcome of an ended turn as new messages: a person asked for it.
	ShowAgain(ctx context.Context, t Turn) error
	// Extend has the card of a turn that ended a moment ago show an answer that became longer, by one edit. It returns ErrCannotAmend if
	// the card has no room for it, is gone, or ended too long ago.
	Extend(ctx context.Context, t Turn) error
	// Withdraw has what the agent of a turn said through tools not be sent any more, as far as it has not left.
	Withdraw(ctx context.Context, t Turn) error
	// Notice says one thing in a conversation outside any turn. It is queued durably and delivered later.
	Notice(ctx context.Context, id ConversationID, text string) error
}

// Card is the growing message of one turn.
type Card interface {
	// Show adds an event. It never waits for the network. Its caller serializes the calls.
	Show(ev cli.Event)
	// Finish shows the outcome and returns when all of it is delivered, or when delivery is known to be
	// impossible or unknown and the chat was told where that could be done. An error means that the
	// outcome is not delivered: Finish is to be called again with it, or Redeliver after the next start.
	Finish(ctx context.Context, o Outcome) error
	// Amend has the chat show an outcome that differs from the one of Finish, which returned without an error, in what the turn changed.
	// After an error it may be called again.
	Amend(ctx context.Context, o Outcome) error
	// Leave ends the card where it is, for the next process to Reopen: what was told is shown as far as that
	// takes one call, and nothing is said about an end. It returns then, or when ctx is done.
	Leave(ctx context.Context)
}
