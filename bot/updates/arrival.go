package updates

import (
	"runtime/debug"
	"time"

	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// arrival is an update from a user who may use the bot. Router.arrive decodes and classifies each update once.
type arrival struct {
	orchestrator.Update
	wire    wireUpdate
	in      *Message       // the new or edited message; nil for any other update
	command *calledCommand // the command in the message; nil for any other message
	word    bool           // the message consists of an abort word
}

// calledCommand is a command in a message, with what Handler.Command returns for its name.
type calledCommand struct {
	Command
	spec  CommandSpec
	known bool
}

// arrive decodes and classifies an update. It returns nil if the update needs no action.
func (r *Router) arrive(u orchestrator.Update) (a *arrival) {
	defer func() {
		if p := recover(); p != nil {
			r.logPanic(u, p)
			a = nil
		}
	}()
	w, ok := r.gate.readStripped(u)
	if !ok || !r.gate.admits(&w) {
		return nil // the settings may have changed since the update was stored
	}
	a = &arrival{Update: u, wire: w}
	m := w.message()
	if w.Callback != nil || r.gate.allow.moves(m) {
		return a
	}
	a.in = parseMessage(u.ID, m, r.me)
	if a.in.Arrived = u.Received; a.in.Arrived.IsZero() {
		a.in.Arrived = time.Now()
	}
	a.in.Role, a.in.sender = r.gate.allow.roleOf(a.in.Person), fence.Member(fencedName(m.From.name()))
	if c, ok := r.commandOf(m, a.in); ok {
		spec, known := r.handler.Command(c.Name)
		a.command = &calledCommand{Command: c, spec: spec, known: known}
	}
	a.word = r.isAbortWord(a.in)
	return a
}

// cutCommand removes the command from the start of the message's text. Only the prompt after the command remains.
func (a *arrival) cutCommand() {
	if formatted, is := ParseCommand(a.in.Text); is {
		a.in.Text, a.in.Plain = formatted.Args, a.command.Args
	}
}

// isAbort reports whether the update is an abort of a user who may abort. It may also return true for an edited message
// that the router later handles as a changed prompt.
func (r *Router) isAbort(a *arrival) bool {
	c := a.command
	return a.word || c != nil && c.known && c.spec.isAbort() && r.me.accepts(c.Command) &&
		!a.in.sent.forwarded && c.spec.Allows(a.in.Role)
}

// logPanic logs that an update made the router panic. One bad update must not block all later ones.
func (r *Router) logPanic(u orchestrator.Update, p any) {
	r.log.Error("routing an update panicked", "update", u.ID, "panic", p, "stack", string(debug.Stack()))
}
