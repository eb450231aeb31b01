package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/statesocket"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

// Outside configures outside clients; see the package comment.
type Outside struct {
	Turns orchestrator.Outsiders
	Guard statesocket.Guard
	Owner func() orchestrator.PersonID // returns the user for whom outside clients act, or 0
}

// outsideWindow is the period for which the limits of an outside client apply. For an agent, the limits apply to one
// turn.
const outsideWindow = 10 * time.Minute

// Reasons why a call or a connection is rejected.
var (
	errNoTurn = errors.New("the tools of ductor work only while a turn of this agent runs in its chat, and none " +
		"does")
	errOtherPlace = errors.New("the tools of ductor work only for the agent that runs the current turn of the chat, " +
		"and that turn runs in another environment than this process")
	errNoOwner = errors.New("ductor has no owner whom it could ask; set the role of a user in its configuration")
)

// outsiders contains the connections of outside clients.
type outsiders struct {
	mu     sync.Mutex
	closed bool
	// ends maps the function that ends a connection to the number of the connection's token; see relay.Grant.Number.
	ends map[*context.CancelFunc]int
}

// add registers a connection. The caller must call remove when the connection ends. After EndOutside, add ends the
// connection at once.
func (o *outsiders) add(number int, end context.CancelFunc) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		end()
	}
	o.ends[&end] = number
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.ends, &end)
	}
}

// end calls match with the token number of each connection, and ends the connection if match returns true.
func (o *outsiders) end(match func(number int) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for end, number := range o.ends {
		if match(number) {
			(*end)()
		}
	}
}

// EndOutside ends the connections and calls of all outside clients. From then on, the server rejects new connections of
// outside clients.
func (s *Server) EndOutside() {
	s.outside.mu.Lock()
	s.outside.closed = true
	s.outside.mu.Unlock()
	s.outside.end(func(int) bool { return true })
}

// revoked returns a function that reports whether the token with the given number was revoked. If the tokens cannot be
// read, this function always returns true.
func (s *Server) revoked() (func(number int) bool, error) {
	grants, err := relay.Grants(s.opts.Dir)
	return func(number int) bool {
		return !slices.ContainsFunc(grants, func(g relay.Grant) bool { return g.Number == number })
	}, err
}

// endRevoked ends the connections whose tokens were revoked, and the calls of these connections.
func (s *Server) endRevoked() {
	revoked, err := s.revoked()
	if err != nil {
		s.opts.Log.Error("end the connections of revoked tokens", "err", err)
	}
	s.outside.end(revoked)
}

// checkToken returns ErrToken if the token of an outside client was revoked.
func (s *Server) checkToken(c caller) error {
	revoked, err := s.revoked()
	if err == nil && revoked(c.outsider.Number) {
		return ErrToken
	}
	return err
}

// identify checks the token of a new connection and returns the client to which it belongs.
func (s *Server) identify(conn net.Conn, from cli.Sandbox, hello relay.Hello) (caller, error) {
	if !relay.IsGrant(hello.Token) {
		c, err := s.keys.caller(hello.Token)
		if err == nil && c.Sandbox != from {
			err = errElsewhere
		}
		return c, err
	}
	if err := s.opts.Outside.Guard.Admit(conn, hello.Secret); err != nil {
		return caller{}, err
	}
	t, known, err := relay.FindGrant(s.opts.Dir, hello.Token)
	o := orchestrator.Outsider{Name: t.Name, Number: t.Number, Owner: s.opts.Outside.Owner(), Dir: t.Dir}
	switch {
	case err != nil:
		return caller{}, err
	case !known:
		return caller{}, ErrToken
	case o.Owner == 0:
		return caller{}, errNoOwner
	}
	return caller{Conversation: o.Conversation(), Agent: o.Agent(), outsider: o}, nil
}

// enter registers the connection of a client and returns its context. The caller must call leave when the connection
// ends. The context of an outside client ends when its token is revoked, or when EndOutside is called.
func (s *Server) enter(ctx context.Context, c caller) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	if !c.isOutside() {
		return ctx, cancel, nil
	}
	remove := s.outside.add(c.outsider.Number, cancel)
	leave = func() { remove(); cancel() }
	if err := s.checkToken(c); err != nil { // the token may have been revoked before the connection was registered
		leave()
		return nil, nil, err
	}
	return ctx, leave, nil
}

// open starts a call: it counts the call and returns the turn of the client. For an outside client, it creates an
// artificial turn. The caller must call end after the call.
func (s *Server) open(ctx context.Context, c caller) (_ call, end func(), err error) {
	if !c.isOutside() {
		turn, err := s.opts.Turns.ActiveTurn(c.Conversation, c.Agent)
		if err != nil {
			return turn, nil, errNoTurn
		}
		// A process that an earlier turn left in another environment must not act for this turn.
		if turn.Turn.Sandbox != c.Sandbox {
			return turn, nil, errOtherPlace
		}
		return turn, func() {}, s.countCall(turn, string(turn.Turn.ID))
	}
	if err := s.checkToken(c); err != nil {
		return call{}, nil, err
	}
	turn, end, err := s.opts.Outside.Turns.OpenOutside(ctx, c.outsider)
	if failure := (*cli.Failure)(nil); errors.As(err, &failure) && failure.Kind == cli.NoDirectory {
		// A client has no chat where the owner could choose another directory.
		return turn, nil, fmt.Errorf("this client can't work in its folder (%s); the owner can give it another one: "+
			"ductor mcp token revoke %s, then ductor mcp token %[2]s --project FOLDER", failure.Reason, c.outsider.Name)
	}
	if err != nil {
		return turn, nil, err
	}
	if err := s.countCall(turn, s.opts.Now().Truncate(outsideWindow).String()); err != nil {
		end()
		return turn, nil, err
	}
	return turn, end, nil
}

// isOutside reports whether an outside client makes the call.
func isOutside(c call) bool { return c.Turn.Prompt.Rights.Of == orchestrator.RightsOfOutside }

// has returns the beginning of an error text for the client: "this turn has", or a similar text for an outside client.
func has(c call) string {
	if isOutside(c) {
		return fmt.Sprintf("within %.0f minutes this client has", outsideWindow.Minutes())
	}
	return "this turn has"
}

// shown returns the turn of a call with the conversation in which users see its messages; see ConversationID.Shown.
func shown(c call) orchestrator.Turn {
	turn := c.Turn
	turn.Prompt.Conversation = turn.Prompt.Conversation.Shown()
	return turn
}

// byline returns the name of an outside client, followed by a colon and the given separator. Users see this text before
// everything that the client sends. For the turn of an agent, byline returns "".
func byline(c call, separator string) string {
	if !isOutside(c) {
		return ""
	}
	return string(c.Turn.Agent) + ":" + separator
}
