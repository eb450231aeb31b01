package side

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

const (
	// loginWait limits how long a log-in may take. The codes for log-ins expire after this time, too.
	loginWait = 15 * time.Minute
	// tokenWait limits the turn that checks a token.
	tokenWait = 90 * time.Second
)

// errCancelled is the cause of the context of a log-in that a user has cancelled.
var errCancelled = errors.New("cancelled")

// LoginOptions configures a LoginDesk. All fields except Owner and Tokens are required.
type LoginOptions struct {
	Gateway orchestrator.Gateway
	Client  Client // runs the turns that check tokens
	Chat    orchestrator.Chat
	Owner   orchestrator.PersonID // gets the codes; 0 disables log-ins with a code
	Tokens  Tokens
	// Place returns a request with the working directory, the environment and the accounts of a conversation's next
	// turn.
	Place func(ctx context.Context, id orchestrator.ConversationID) (cli.Request, error)
	Life  context.Context // log-ins end when this context is done
	// The LoginDesk calls Enter before it starts work in the background. It calls leave when the work ends. If ok is
	// false, ductor is ending, and the work must not start.
	Enter func() (leave func(), ok bool)
	Lang  *lang.Choices
	Log   *slog.Logger
}

// Tokens stores tokens with which agents log in. Its functions are safe for concurrent use.
type Tokens struct {
	// Try lets an agent use a token in the environment variable with the given name. The account is a result of
	// cli.Account.Of. The agent uses the token until the caller calls undo, or until ductor ends. Even after undo,
	// ductor removes the token from logs, messages and stored texts.
	Try func(account, variable, token string) (undo func())
	// Keep stores the token, so that it is also used after a restart of ductor.
	Keep func(account, variable, token string) error
}

// LoginDesk logs in agents at the request of users. It implements agent.LoginService of package bot/agent. It is safe
// for concurrent use.
type LoginDesk struct {
	o       LoginOptions
	running sync.Map // maps an orchestrator.AgentEnv to the function that cancels its log-in
	trying  sync.Map // contains an account (cli.Account.Of) while one of its tokens is being checked
}

// NewLoginDesk returns a LoginDesk.
func NewLoginDesk(o LoginOptions) *LoginDesk { return &LoginDesk{o: o} }

// LogInOf implements agent.LoginService.
func (d *LoginDesk) LogInOf(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.LogInID) (orchestrator.AgentEnv, error) {
	of, whole := id.Env()
	if whole {
		return of, nil
	}
	at, err := d.o.Place(ctx, in)
	of.Account, of.Sandbox = at.Accounts[of.Agent], at.Sandbox
	return of, err
}

// Logins implements agent.LoginService.
func (d *LoginDesk) Logins(of orchestrator.AgentEnv) []cli.Login {
	return d.o.Gateway.Logins(of.Sandbox, of.Agent, of.Account)
}

// LogIn implements agent.LoginService. For a log-in with a code, all messages go to the private chat of the owner.
func (d *LoginDesk) LogIn(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login) error {
	to := by.Conversation
	if way.Kind == cli.LoginByCode {
		to = orchestrator.ConversationID{Chat: int64(d.o.Owner)}
	}
	if to.Chat == 0 || way.ID == "" {
		return orchestrator.ErrBadChoice
	}
	life, cancel := context.WithCancelCause(d.o.Life)
	if _, runs := d.running.LoadOrStore(of, cancel); runs {
		cancel(nil)
		return nil
	}
	leave, open := d.o.Enter()
	if !open {
		cancel(nil)
		return orchestrator.ErrShutdown
	}
	go func() {
		defer leave()
		defer cancel(nil)
		defer d.running.Delete(of)
		d.logIn(life, of, way, to)
	}()
	return nil
}

// logIn logs in an agent, and sends a message about the result to a conversation.
func (d *LoginDesk) logIn(life context.Context, of orchestrator.AgentEnv, way cli.Login,
	to orchestrator.ConversationID) {
	ctx, stop := context.WithTimeout(life, loginWait)
	defer stop()
	p := d.o.Lang.Of(to.Chat)
	name := of.Account.NameOf(p, of.Agent)
	err := d.o.Gateway.LogIn(ctx, of.Sandbox, of.Agent, way,
		func(c cli.DeviceCode) { d.tell(to, p.Text("turn.log-in", name, c.URL, c.Code)) })
	switch {
	case err == nil:
		d.tell(to, p.Text("turn.logged-in", name))
	case errors.Is(context.Cause(life), errCancelled):
		d.tell(to, p.Text("turn.log-in-cancelled", name))
	case d.o.Life.Err() == nil:
		d.o.Log.Warn("log an agent in", "agent", of.Agent, "err", err)
		d.tell(to, p.Text("turn.not-logged-in", name, reasonOf(err)))
	}
}

// reasonOf returns the text of an error without the name of the agent, which the message already contains.
func reasonOf(err error) string {
	return cli.ShortLine(cmp.Or(cli.AsFailure("", err).Reason, err.Error()))
}

// tell sends a message, even if ductor is ending.
func (d *LoginDesk) tell(to orchestrator.ConversationID, text string) {
	if err := d.o.Chat.Notice(context.WithoutCancel(d.o.Life), to, text); err != nil {
		d.o.Log.Warn("report a log-in", "chat", to.Chat, "err", err)
	}
}

// CancelLogIn implements agent.LoginService.
func (d *LoginDesk) CancelLogIn(of orchestrator.AgentEnv) bool {
	cancel, runs := d.running.Load(of)
	if runs {
		cancel.(context.CancelCauseFunc)(errCancelled)
	}
	return runs
}

// UseToken implements agent.LoginService. It checks the token with a short turn. If the agent does not reject the
// token, UseToken stores it.
func (d *LoginDesk) UseToken(ctx context.Context, by orchestrator.Press, env orchestrator.AgentEnv, way cli.Login,
	token string) error {
	at, err := d.o.Place(ctx, by.Conversation)
	if err != nil {
		return err
	}
	agent, of := env.Agent, env.Account.Of(env.Agent)
	at.Session, at.Sandbox, at.Accounts = "log-in", env.Sandbox, at.Accounts.With(agent, env.Account)
	// A token under test is active in all environments of the account. A second test would replace the token of the
	// first, so allow only one test at a time.
	if _, tries := d.trying.LoadOrStore(of, true); tries {
		return orchestrator.ErrStillOpen
	}
	leave, open := d.o.Enter()
	if !open {
		d.trying.Delete(of)
		return orchestrator.ErrShutdown
	}
	undo := d.o.Tokens.Try(of, way.Variable, token)
	go func() {
		defer leave()
		defer d.trying.Delete(of)
		d.o.Gateway.Refresh()
		tried := d.try(at, agent, by.Person)
		var f *cli.Failure
		refused := errors.As(tried, &f) && (f.Kind == cli.NotLoggedIn || f.Kind == cli.Forbidden)
		var kept error
		if !refused {
			kept = d.o.Tokens.Keep(of, way.Variable, token)
		}
		if refused || kept != nil {
			undo()
			d.o.Gateway.Refresh()
		}
		p := d.o.Lang.Of(by.Conversation.Chat)
		name := env.Account.NameOf(p, agent)
		switch {
		case refused:
			d.tell(by.Conversation, p.Text("turn.token-refused", name, way.Command))
		case kept != nil:
			d.o.Log.Error("store a token", "agent", agent, "err", kept)
			d.tell(by.Conversation, p.Text("turn.not-logged-in", name, reasonOf(kept)))
		case tried != nil:
			d.tell(by.Conversation, p.Text("turn.token-unchecked", name, reasonOf(tried)))
		default:
			d.tell(by.Conversation, p.Text("turn.logged-in", name))
		}
	}()
	return nil
}

func (d *LoginDesk) try(at cli.Request, agent cli.Agent, person orchestrator.PersonID) error {
	_, err := d.o.Client.Ask(d.o.Life, at, Question{
		Model: orchestrator.ModelChoice{Agent: agent}, Prompt: "OK?", Wait: tokenWait, Person: person,
	})
	if errors.Is(err, ErrNoText) {
		return nil
	}
	return err
}
