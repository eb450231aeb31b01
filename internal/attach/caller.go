package attach

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// caller handles the requests from one terminal. It runs prompts and commands one after another, in the order in which
// the user typed them. Decisions and aborts do not wait for earlier requests.
type caller struct {
	s       *Server
	t       *terminal
	in      *orchestrator.ConversationID // conversation that the terminal shows; nil until the terminal opens one
	all     *sync.WaitGroup
	ordered chan func()
}

// mostOrdered limits the prompts and commands of one terminal that wait for earlier prompts and commands.
const mostOrdered = 32

// Errors for the user of a terminal.
var (
	errNotOpen    = errors.New("no conversation is open")
	errUnknown    = errors.New("there is no such conversation")
	errID         = errors.New("the id of a request has up to 64 letters, digits, - and _")
	errText       = fmt.Errorf("a prompt has between 1 and %d bytes of valid UTF-8", wire.MaxPrompt)
	errCrowded    = errors.New("too much of this terminal waits; try again in a moment")
	errNotWaiting = errors.New("it no longer waits")
)

// work runs prompts and commands in order until ctx ends.
func (c *caller) work(ctx context.Context) {
	for {
		select {
		case do := <-c.ordered:
			do()
		case <-ctx.Done():
			return
		}
	}
}

func (c *caller) handle(ctx context.Context, r wire.Request) {
	switch {
	case r.List != nil:
		c.all.Go(func() { c.list(ctx) })
	case r.Open != nil:
		c.open(ctx, *r.Open)
	case r.Prompt != nil:
		c.inOrder(ctx, r.Prompt.ID, func(ctx context.Context, in orchestrator.ConversationID) error {
			return c.prompt(ctx, in, *r.Prompt)
		})
	case r.Command != nil:
		c.inOrder(ctx, r.Command.ID, func(ctx context.Context, in orchestrator.ConversationID) error {
			return c.command(ctx, in, *r.Command)
		})
	case r.Decide != nil:
		c.atOnce(ctx, r.Decide.ID, func(ctx context.Context, in orchestrator.ConversationID) error {
			return c.decide(ctx, in, *r.Decide)
		})
	case r.Abort != nil:
		c.atOnce(ctx, r.Abort.ID, func(ctx context.Context, in orchestrator.ConversationID) error {
			return c.abort(ctx, in, *r.Abort)
		})
	case r.Cancel != nil:
		c.atOnce(ctx, r.Cancel.ID, func(ctx context.Context, in orchestrator.ConversationID) error {
			return c.cancel(ctx, in, cli.TurnID(r.Cancel.Turn))
		})
	}
}

// action handles a request in a conversation.
type action func(ctx context.Context, in orchestrator.ConversationID) error

func (c *caller) inOrder(ctx context.Context, id string, do action) {
	run := c.answered(ctx, id, do)
	select {
	case c.ordered <- run:
	default:
		c.reply(id, errCrowded)
	}
}

func (c *caller) atOnce(ctx context.Context, id string, do action) { c.all.Go(c.answered(ctx, id, do)) }

// idForm matches valid ids of requests. Ids become parts of database keys.
var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// answered returns a function that runs an action and sends the reply to the terminal. The action gets the conversation
// that was open when answered was called, even if the user has opened another one since.
func (c *caller) answered(ctx context.Context, id string, do action) func() {
	in := c.in
	return func() {
		ctx, cancel := context.WithTimeout(ctx, requestWait)
		defer cancel()
		err := errNotOpen
		switch {
		case !idForm().MatchString(id):
			err = errID
		case in != nil:
			err = do(ctx, *in)
		}
		if errors.Is(err, orchestrator.ErrShutdown) || ctx.Err() != nil {
			// Send no reply. The terminal then sends the request again to the next ductor process, or after a
			// reconnect.
			return
		}
		c.reply(id, err)
	}
}

func (c *caller) reply(id string, err error) {
	r := wire.Reply{ID: cli.Shorten(id, wire.MaxID)}
	if err != nil {
		r.Error = sentence(err)
	}
	c.t.queue(c.s.opts.Hub.encode(wire.Message{Reply: &r}))
}

func sentence(err error) string {
	for is, text := range map[error]string{
		orchestrator.ErrApprovalDecided:   "It was decided already.",
		orchestrator.ErrApprovalExpired:   "It is too late: nobody decided in time, so it was denied.",
		orchestrator.ErrApprovalWithdrawn: "The agent no longer waits for it.",
		orchestrator.ErrNoApproval:        "There is no such request.",
		orchestrator.ErrElsewhere:         "It belongs to another conversation.",
		orchestrator.ErrNotApprover:       "You may not decide this.",
		orchestrator.ErrBadChoice:         "This choice is not offered, or an answer is missing.",
		orchestrator.ErrNotTold:           "Your decision is stored, but the agent could not be told.",
		orchestrator.ErrPathMoved:         "A path of the request leads elsewhere now, so it can only be denied.",
		orchestrator.ErrNotAllowed:        "You may not do this.",
		orchestrator.ErrQueueFull:         "The queue of this conversation is full.",
		orchestrator.ErrDiskFull:          "The disk is full, so nothing was stored.",
		orchestrator.ErrNoTurn:            "It is over.",
	} {
		if errors.Is(err, is) {
			return text
		}
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// prompt stores a prompt as a turn. It first shows the prompt in the chat, so that the answer appears below the prompt.
func (c *caller) prompt(ctx context.Context, in orchestrator.ConversationID, p wire.Prompt) error {
	if strings.TrimSpace(p.Text) == "" || len(p.Text) > wire.MaxPrompt || !utf8.ValidString(p.Text) {
		return errText
	}
	by := c.press(in)
	if err := c.s.opts.Chat.ShowTyped(ctx, by, p.ID, p.Text); err != nil {
		return err
	}
	receipt, err := c.s.opts.Desk.SubmitOnce(ctx, cli.TurnID(wire.TurnOf(p.ID)), orchestrator.Prompt{
		Conversation: in, Person: by.Person, Text: p.Text, Rights: orchestrator.Rights{Of: by.Role.OfTurns()},
		Arrived: by.Arrived,
	})
	if err == nil && receipt.Full {
		err = orchestrator.ErrQueueFull
	}
	return err
}

// press returns a Press of the terminal's user, as if the user had pressed a button in the chat.
func (c *caller) press(in orchestrator.ConversationID) orchestrator.Press {
	return orchestrator.Press{
		Conversation: in, Person: c.t.user, Role: c.s.opts.RoleOf(c.t.user), Arrived: c.s.opts.Now(),
	}
}

func (c *caller) command(ctx context.Context, in orchestrator.ConversationID, r wire.Command) error {
	if len(r.Text) > wire.MaxPrompt || !utf8.ValidString(r.Text) {
		return errText
	}
	return c.s.opts.Chat.CommandTyped(ctx, c.press(in), r.ID, r.Text)
}

func (c *caller) decide(ctx context.Context, in orchestrator.ConversationID, r wire.Decide) error {
	a, err := c.s.opts.Desk.Approval(ctx, orchestrator.ApprovalID(r.Approval), in)
	if err != nil {
		return err
	}
	if err := a.WhyClosed(c.s.opts.Now()); err != nil {
		return err
	}
	if !slices.ContainsFunc(offersOf(a), func(o wire.Offer) bool { return o.Choice == r.Choice }) {
		return orchestrator.ErrBadChoice
	}
	c.s.opts.Hub.decide(in, a.ID, func() bool {
		_, err = c.s.opts.Desk.Decide(ctx, a.ID, a.Nonce, c.press(in), orchestrator.Verdict{
			Choice: orchestrator.Choice(r.Choice), Reason: r.Reason, Answers: r.Answers,
		})
		return err == nil || errors.Is(err, orchestrator.ErrNotTold)
	})
	return err
}

func (c *caller) abort(ctx context.Context, in orchestrator.ConversationID, r wire.Abort) error {
	if r.Turn != "" {
		return c.s.opts.Desk.StopTurn(ctx, cli.TurnID(r.Turn), c.press(in))
	}
	return c.s.opts.Chat.AbortTyped(ctx, c.press(in), r.ID)
}

func (c *caller) cancel(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) error {
	cancelled, err := c.s.opts.Desk.CancelQueued(ctx, turn, c.press(in))
	if err == nil && !cancelled {
		err = errNotWaiting
	}
	return err
}
