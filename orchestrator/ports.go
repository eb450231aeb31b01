package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// Store persists the state of the domain. internal/store implements it with SQLite.
//
// Every method is one transaction and durable when it returns. Errors are wrapped and final: the caller does not retry.
// Safe for concurrent use.
type Store interface {
	ApprovalStore
	LimitStore
	QueueStore
	StepStore

	// Conversation returns the choices of users in a conversation: agent, model, mode and directory. Without any
	// choices it returns a zero value with the ID.
	Conversation(ctx context.Context, id ConversationID) (Conversation, error)
	// SaveConversation stores all fields of c and audits the change, in one transaction.
	SaveConversation(ctx context.Context, c Conversation, audit ...AuditEntry) error

	// MoveChat moves all data of a group to its new chat ID: sessions, choices, rules, schedules, history. Choices that
	// already exist under the new ID stay.
	MoveChat(ctx context.Context, from, to int64) error

	// EndBypasses ends the bypass of every conversation that has one, so that agents ask again. It audits each end and
	// returns the conversations.
	EndBypasses(ctx context.Context, at time.Time) ([]ConversationID, error)

	// CreateSession stores s and makes s the current session of its conversation.
	CreateSession(ctx context.Context, s Session) error
	// Session returns ErrNoSession for an unknown ID.
	Session(ctx context.Context, id SessionID) (Session, error)
	// MoveSession moves a session to another conversation; see SessionStore.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// TitleSession changes the title of a session. It changes nothing if the current title is not from.
	TitleSession(ctx context.Context, id SessionID, from, title string) error
	// TouchSession records that a session was used, or returns ErrNoSession.
	TouchSession(ctx context.Context, id SessionID, at time.Time) error
	// SetAgentSession stores an agent's own part of a session. If own has an empty ID, SetAgentSession deletes that
	// part.
	SetAgentSession(ctx context.Context, id SessionID, of AgentEnv, own AgentSession) error

	// EnqueueTurn stores a queued turn and marks the updates of its prompt as handled. It also removes the agents in
	// forget from the AgentSessions of the turn's session. It makes all of these changes or none. If the turn repeats a
	// turn that was already repeated, it returns ErrRepeated.
	EnqueueTurn(ctx context.Context, t Turn, forget ...AgentEnv) error
	// Unrepeated returns ErrRepeated if another turn repeats this turn.
	Unrepeated(ctx context.Context, id cli.TurnID) error
	// UpdatePrompt changes the prompt of a queued turn. It returns false if the turn is no longer queued.
	UpdatePrompt(ctx context.Context, id cli.TurnID, text string, files []Attachment) (bool, error)
	// StartTurn changes a queued turn to running and stores its starting point. For a running turn it replaces the
	// starting point. For any other turn it returns false. A power failure may undo the change.
	StartTurn(ctx context.Context, t Turn, at cli.Start) (bool, error)
	// FinishTurn stores the outcome of a turn, and adds its cost, tokens and message to its session. The turn must be
	// running, or steered and not delivered.
	FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o Outcome) error
	// AbortTurns makes these changes in one transaction. running may be empty.
	//   - It marks the running turn as aborting. If this process dies first, the next process ends the turn. AbortTurns
	//     may be called before StartTurn has stored the turn. A power failure may undo the mark.
	//   - It changes queued turns to cancelled.
	//   - It marks the updates of the abort as handled.
	//
	// AbortTurns skips turns that are no longer running or queued.
	AbortTurns(ctx context.Context, running cli.TurnID, queued []cli.TurnID, handled Handled) error
	// CancelTurn changes a turn to cancelled. It returns false if the turn is neither queued nor steered, or if its
	// prompt is already delivered.
	CancelTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// ExtendAnswer appends text to the answer of an ended turn and returns the turn.
	ExtendAnswer(ctx context.Context, id cli.TurnID, text string) (Turn, error)
	// AmendOutcome replaces the outcome that FinishTurn stored. Only the file changes and Announce may differ from the
	// stored outcome.
	AmendOutcome(ctx context.Context, id cli.TurnID, o Outcome) error
	// MarkDelivered records that the chat shows the outcome.
	MarkDelivered(ctx context.Context, id cli.TurnID) error
	// Turn returns ErrNoTurn for an unknown ID.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
	// OpenTurns lists turns that are queued, running, or ended but not delivered, oldest first.
	OpenTurns(ctx context.Context) ([]Turn, error)
	// TurnsShownWaiting lists turns that no longer wait, but that a chat still shows as waiting.
	TurnsShownWaiting(ctx context.Context) ([]Turn, error)
	// RunningTurns lists running turns, and turns whose agent still works in the background.
	RunningTurns(ctx context.Context) ([]cli.OpenTurn, error)
	// EndBackground records that the background work of a run has ended, because the run no longer exists.
	EndBackground(ctx context.Context, run cli.RunID) error
	// EntriesAfter is History without the entries up to and including number after.
	EntriesAfter(ctx context.Context, id SessionID, after int64, limit int) ([]Turn, error)
	// History lists the last ended entries of a session; see SessionStore.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
}

// Gateway runs turns. *service.Service implements it, and documents the methods that have no comment here.
type Gateway interface {
	Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	// Survey reports which turns of the previous process are still running, have finished, or are lost; see
	// service.Service.
	Survey(ctx context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error)
	Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	Settled(turn cli.TurnID)
	Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	Bring(ctx context.Context, in cli.Sandbox, files []string) error
	Steer(ctx context.Context, turn cli.TurnID, req cli.Request) error
	SetPermission(ctx context.Context, turn cli.TurnID, mode cli.PermissionMode) error
	// Abort ends everything that runs for a conversation, including all child processes. It returns false if nothing
	// ran.
	Abort(conversation cli.Conversation) bool
	Outliving(turn cli.TurnID) func(ctx context.Context) []cli.ProcessName
	// Release closes the idle session of a conversation, without waiting for it.
	Release(conversation cli.Conversation)
	Warm(agent cli.Agent, req cli.Request)
	// Live returns the running agents and the resources that they hold.
	Live(ctx context.Context) cli.Living
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
	ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked
	Cannot(in cli.Sandbox, agent cli.Agent, mode cli.PermissionMode) string
	// CannotHold explains why ductor cannot enforce the tool lists of a request for an agent. It returns "" if ductor
	// can enforce them.
	CannotHold(agent cli.Agent, req cli.Request) string
	Fill(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) (cli.Fill, error)
	Commands(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) ([]cli.AgentCommand, error)
	Menu(ctx context.Context, in cli.Sandbox, of cli.Accounts, only ...cli.Agent) []cli.MenuEntry
	Accounts(ctx context.Context, in cli.Sandbox, agent cli.Agent) []cli.MenuEntry
	Default(ctx context.Context, in cli.Sandbox, of cli.Accounts) (agent cli.Agent, instead *cli.Failure, err error)
	// Logins lists the ways to log in an account of an agent of an environment; see cli.LoginProvider.
	Logins(in cli.Sandbox, agent cli.Agent, account cli.Account) []cli.Login
	LogIn(ctx context.Context, in cli.Sandbox, agent cli.Agent, way cli.Login, show func(cli.DeviceCode)) error
	Refresh()
	Substitute(ctx context.Context, in cli.Sandbox, of cli.Accounts, others []cli.Agent) (agent cli.Agent,
		configured bool)
}

// Tracer records turns for monitoring. internal/trace implements it.
type Tracer interface {
	// Begin starts the trace of a turn.
	Begin(agent cli.Agent, req cli.Request) TurnTrace
}

// TurnTrace records one turn of an agent. Calls must be serial.
type TurnTrace interface {
	// Observe adds an event of the turn.
	Observe(ev cli.Event)
	// End ends the trace with the result of the turn.
	End(r cli.Result)
}

// Viewers show turns in terminals, in addition to the chat. Their functions do not block.
type Viewers struct {
	// Follow shows that a turn starts, and returns the function that shows the turn's events. Calls of the returned
	// function must be serial. If replayed is true, the events up to cli.CaughtUp happened before this process started.
	Follow func(t Turn, replayed bool) func(ev cli.Event)
	// Ended shows an ended turn with its Outcome.
	Ended func(t Turn)
}

// Chat shows turns to users. Package bot implements it.
type Chat interface {
	// Card creates the message that shows a turn and grows with it. Card itself sends nothing and does not block.
	Card(t Turn) Card
	// Reopen is Card for a turn that the previous process was showing. The card continues in its existing messages. The
	// caller passes all events up to cli.CaughtUp to Show again, and the card then shows them in one update.
	Reopen(ctx context.Context, t Turn) Card
	// Queued shows that a turn waits, and how many turns run before it. It does not wait for the network. The caller
	// must call it before Unqueued.
	Queued(t Turn, ahead int)
	// Unqueued removes the message of Queued, because the turn now runs or was cancelled.
	Unqueued(t Turn)
	// Redeliver shows the outcome of a turn that was interrupted, or that ended before the chat showed it completely.
	// It returns when the chat shows the outcome, or a notice that the outcome may be missing. After an error the
	// caller may retry.
	Redeliver(ctx context.Context, t Turn) error
	// ShowAgain sends the outcome of an ended turn as new messages, at a user's request.
	ShowAgain(ctx context.Context, t Turn) error
	// Extend updates the card of a turn that ended a moment ago, because its answer became longer. It makes one edit.
	// It returns ErrCannotAmend if the card has no space, no longer exists, or ended too long ago.
	Extend(ctx context.Context, t Turn) error
	// Withdraw cancels unsent messages that the turn's agent created through tools.
	Withdraw(ctx context.Context, t Turn) error
	// Notice sends a message to a conversation outside of any turn. It stores the message durably and delivers it
	// later.
	Notice(ctx context.Context, id ConversationID, text string) error
}

// Card is the message of one turn. It grows while the turn runs.
type Card interface {
	// Show adds an event. It never waits for the network. Calls must be serial.
	Show(ev cli.Event)
	// Finish shows the outcome. It returns when all of the outcome is delivered. If delivery is impossible, or its
	// success is unknown, Finish sends a notice about that, if possible, and returns. After an error the caller must
	// call Finish again, or Redeliver after the next start.
	Finish(ctx context.Context, o Outcome) error
	// Amend shows an outcome again after its file changes were computed. The caller must have called Finish
	// successfully. After an error the caller may retry.
	Amend(ctx context.Context, o Outcome) error
	// Leave closes the card of a turn that continues, so that the next process can Reopen it. It tries to show the
	// received events with one call. It returns after that, or when ctx is done.
	Leave(ctx context.Context)
}
