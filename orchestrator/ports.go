package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// Store stores everything that must survive a restart: conversations, sessions, turns, approvals, jobs and so on.
// internal/store implements it with SQLite.
//
// Every method is one transaction. When a method returns, its effect is durable, unless the method's comment says
// otherwise. A caller must not retry after an error. All methods are safe for concurrent use.
type Store interface {
	ApprovalStore
	LimitStore
	QueueStore
	StepStore

	// Conversation returns the choices of users in a conversation: agent, model, mode and directory. If users have
	// chosen nothing, only the ID is set. A restart ends every bypass. So if the store contains a bypass of an earlier
	// process, Conversation returns the mode ask.
	Conversation(ctx context.Context, id ConversationID) (Conversation, error)
	// SaveConversation stores c, and adds entries to the audit log.
	SaveConversation(ctx context.Context, c Conversation, audit ...AuditEntry) error

	// MoveChat moves all data of a group to a new chat ID: sessions, choices, rules, schedules and history. It does not
	// overwrite choices that exist under the new ID.
	MoveChat(ctx context.Context, from, to int64) error

	// EndedBypasses lists the conversations for which the store still contains a bypass of an earlier process.
	EndedBypasses(ctx context.Context) ([]ConversationID, error)
	// EndBypasses replaces every bypass of an earlier process with the mode ask. It adds an audit entry for each of the
	// given conversations.
	EndBypasses(ctx context.Context, over []ConversationID, at time.Time) error

	// CreateSession stores s and makes s the current session of its conversation.
	CreateSession(ctx context.Context, s Session) error
	// Session loads a session by its ID. The error is ErrNoSession if the ID is unknown.
	Session(ctx context.Context, id SessionID) (Session, error)
	// MoveSession: see SessionStore.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// TitleSession changes the title of a session, but only if its current title is the expected one.
	TitleSession(ctx context.Context, id SessionID, expected, title string) error
	// TouchSession records that a session was used, and restores an archived session. It may return ErrNoSession.
	TouchSession(ctx context.Context, id SessionID, at time.Time) error
	// SetAgentSession records which agent session belongs to a session of ductor. If own.ID is empty, it deletes the
	// record.
	SetAgentSession(ctx context.Context, id SessionID, of AgentEnv, own AgentSession) error

	// EnqueueTurn stores a queued turn and marks the updates of its prompt as handled. If the turn repeats an earlier
	// turn (see Turn.Again), EnqueueTurn deletes the LaterJob of the earlier turn. It returns ErrRepeated if the
	// earlier turn was already repeated, or if that job has started a run.
	//
	// The agents in forget must start new agent sessions. EnqueueTurn therefore deletes their records from the
	// AgentSessions of the turn's session.
	EnqueueTurn(ctx context.Context, t Turn, forget ...AgentEnv) error
	// Unrepeated returns ErrRepeated if another turn already repeats this turn, and otherwise nil.
	Unrepeated(ctx context.Context, id cli.TurnID) error
	// UpdatePrompt stores the text and the files of a queued turn's prompt, and the turn's Wants. It returns false if
	// the turn is no longer queued.
	UpdatePrompt(ctx context.Context, t Turn) (bool, error)
	// StartTurn changes a queued turn to running. It also stores the position in the agent's output at which the turn
	// starts. For a running turn, StartTurn stores only this position. For a turn in any other state, it returns false.
	// A power failure may undo the change.
	StartTurn(ctx context.Context, t Turn, start cli.Start) (bool, error)
	// FinishTurn stores the outcome of a turn, and adds its cost and tokens to the totals of its session. The turn must
	// be running, or it must be in the state TurnSteered with Delivered false.
	FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o Outcome) error
	// AbortTurns makes these changes in one transaction:
	//   - It marks the running turns as being aborted. If this process dies, the next process ends them. AbortTurns
	//     also marks a turn for which StartTurn was not called yet. A power failure may undo the mark.
	//   - It changes the state of the queued turns to cancelled.
	//   - It marks the updates with which the user asked for the abort as handled.
	//
	// It skips turns that are no longer running or queued.
	AbortTurns(ctx context.Context, running, queued []cli.TurnID, handled Handled) error
	// CancelTurn changes the state of a queued or steered turn to TurnCancelled. It returns false if the turn is in
	// another state, or if the agent has got the prompt.
	CancelTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// ExtendAnswer appends text to the answer of an ended turn and returns the turn.
	ExtendAnswer(ctx context.Context, id cli.TurnID, text string) (Turn, error)
	// AmendOutcome replaces the outcome that FinishTurn stored. The new outcome may differ only in the file changes and
	// in Announce.
	AmendOutcome(ctx context.Context, id cli.TurnID, o Outcome) error
	// MarkDelivered records that the chat shows the outcome of a turn.
	MarkDelivered(ctx context.Context, id cli.TurnID) error
	// Turn returns a turn, or ErrNoTurn for an unknown ID.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
	// OpenTurns lists the turns that are queued, that are running, or whose outcome the chat does not show yet. The
	// oldest is first.
	OpenTurns(ctx context.Context) ([]Turn, error)
	// TurnsShownWaiting lists turns that are no longer queued, although the chat still shows them as waiting.
	TurnsShownWaiting(ctx context.Context) ([]Turn, error)
	// RunningTurns lists the turns that are running, and ended turns whose agent still works in the background.
	RunningTurns(ctx context.Context) ([]cli.OpenTurn, error)
	// EndBackground records that an agent process has ended, and with it the background work of its turns.
	EndBackground(ctx context.Context, run cli.RunID) error
	// EntriesAfter returns the same entries as History, but only those with a number greater than the given one.
	EntriesAfter(ctx context.Context, id SessionID, after int64, limit int) ([]Turn, error)
	// History lists the last ended entries of a session; see SessionStore.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
}

// Gateway runs turns. *service.Service implements it and documents the methods that have no comment here.
type Gateway interface {
	Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	// Survey reports which turns of the previous process are still running, have finished, or are lost.
	Survey(ctx context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error)
	Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	Settled(turn cli.TurnID)
	Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	Bring(ctx context.Context, in cli.Sandbox, files []string) error
	Steer(ctx context.Context, turn cli.TurnID, req cli.Request) error
	SetPermission(ctx context.Context, turn cli.TurnID, mode cli.PermissionMode) error
	// Abort ends everything that runs for a conversation, including child processes. It returns false if nothing was
	// running.
	Abort(conversation cli.Conversation) bool
	Outliving(turn cli.TurnID) func(ctx context.Context) []cli.ProcessName
	// Release closes the agent process of a conversation if it is idle. It does not wait for the process.
	Release(conversation cli.Conversation)
	Warm(agent cli.Agent, req cli.Request)
	// Live returns the running agents and the resources that they hold.
	Live(ctx context.Context) cli.Living
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
	ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked
	Cannot(in cli.Sandbox, agent cli.Agent, mode cli.PermissionMode) string
	// CannotHold returns "" if ductor can prevent an agent from using tools that the request forbids. Otherwise it
	// returns the reason.
	CannotHold(agent cli.Agent, req cli.Request) string
	Fill(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) (cli.Fill, error)
	Commands(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) ([]cli.AgentCommand, error)
	Menu(ctx context.Context, in cli.Sandbox, of cli.Accounts, only ...cli.Agent) []cli.MenuEntry
	Accounts(ctx context.Context, in cli.Sandbox, agent cli.Agent) []cli.MenuEntry
	Default(ctx context.Context, in cli.Sandbox, of cli.Accounts) (agent cli.Agent, instead *cli.Failure, err error)
	// Logins lists the ways in which a user can log in to an account of an agent in an environment.
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

// Viewers contains functions that show turns in terminals, in addition to the chat. The functions do not block.
type Viewers struct {
	// Follow shows that a turn starts. It returns a function that shows the events of the turn; calls of that function
	// must be serial. If replayed is true, the events before cli.CaughtUp happened before this process started.
	Follow func(t Turn, replayed bool) func(ev cli.Event)
	// Ended shows the Outcome of a turn that has ended.
	Ended func(t Turn)
}

// Chat shows turns to users. Package bot implements it.
type Chat interface {
	// Card creates the message that shows a turn and grows with it. Card does not block and sends nothing yet.
	Card(t Turn) Card
	// Reopen returns the card of a turn that began before a restart of ductor. The card continues in the existing
	// messages. The caller must pass all events of the turn to Show again, from the beginning. The card shows all
	// events before cli.CaughtUp in a single edit.
	Reopen(ctx context.Context, t Turn) Card
	// Queued shows that a turn waits, and how many turns run before it. Queued does not wait for the network.
	Queued(t Turn, ahead int)
	// Unqueued deletes the message that Queued sent, because the turn now runs or was cancelled. The caller must call
	// Queued first.
	Unqueued(t Turn)
	// Redeliver shows the outcome of a turn that ended before the chat showed it completely, for example because ductor
	// crashed. It returns once the chat shows the outcome, or a message which says that the outcome may be incomplete.
	// After an error the caller may retry.
	Redeliver(ctx context.Context, t Turn) error
	// ShowAgain sends the outcome of a turn as new messages, if a user asks for it.
	ShowAgain(ctx context.Context, t Turn) error
	// Extend edits the card of a turn that has ended, because the agent has added text to its answer. It returns
	// ErrCannotAmend if the card has no space, no longer exists, or ended too long ago.
	Extend(ctx context.Context, t Turn) error
	// Withdraw cancels messages that the turn's agent created with tools and that are not sent yet.
	Withdraw(ctx context.Context, t Turn) error
	// Notice sends a message to a conversation. The message does not belong to a turn. Notice stores the message and
	// returns. The message is sent later, even after a crash.
	Notice(ctx context.Context, id ConversationID, text string) error
}

// Card is the message that shows one turn. It grows while the turn runs.
type Card interface {
	// Show adds an event to the card. It never waits for the network. Calls must be serial.
	Show(ev cli.Event)
	// End stops the growth of the card: the card ignores later events, and sends nothing more before Finish. End does
	// not wait for the network.
	End()
	// Finish shows the outcome and returns once all of it is delivered. If a part cannot be delivered, or if it is
	// unknown whether the part arrived, Finish tries to send a message that explains this, and returns. After an error
	// the caller must call Finish again, or Redeliver after the next start.
	Finish(ctx context.Context, o Outcome) error
	// Amend shows the outcome again, now with the file changes of the turn. The caller must have called Finish
	// successfully. After an error the caller may retry.
	Amend(ctx context.Context, o Outcome) error
	// Leave is called if ductor ends while the turn continues. It makes one last call to Telegram, to show the events
	// received so far, and returns when that call has ended or ctx is done. After the restart of ductor, Reopen
	// continues with the card.
	Leave(ctx context.Context)
}
