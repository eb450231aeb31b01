package turn

import (
	"fmt"
	"slices"
	"time"

	"ductor/cli"
)

// tools are the tool calls of a turn. Some models number the calls of each message from zero, so an agent can use the
// ID of an ended call for another call. In events, the later call then has a different ID.
type tools struct {
	open []*toolCall
	last map[cli.ToolID]*toolCall // the latest call with each of the agent's IDs
	used map[cli.ToolID]bool      // IDs that events already use
}

type toolCall struct {
	id      cli.ToolID // the call's ID in events, which may differ from the agent's ID
	uses    int        // 1 for the first call with the agent's ID, 2 for the next call with that ID, and so on
	digest  string     // digest of the call's name and input
	started time.Time
	ended   bool
}

func newTools() tools {
	return tools{last: map[cli.ToolID]*toolCall{}, used: map[cli.ToolID]bool{}}
}

// start adds a call. It returns false if the agent announces a running call again. It also returns false if the last
// call with this ID had the same name and input, because the agent then repeats the announcement of that call.
func (t *tools) start(announced cli.ToolStarted, at time.Time) (*toolCall, bool) {
	digest := callDigest(announced)
	before := t.last[announced.ID]
	if before != nil && (!before.ended || before.digest == digest) {
		return nil, false
	}
	call := &toolCall{id: t.next(announced.ID), uses: 1, digest: digest, started: at}
	if before != nil {
		call.uses = before.uses + 1
	}
	t.last[announced.ID], t.used[call.id] = call, true
	t.open = append(t.open, call)
	return call, true
}

// reuse records that the next call with this ID is a new one, even if its name and input equal those of the last call.
// Without reuse, start would ignore such a call as a repetition. reuse does nothing while the last call is running.
func (t *tools) reuse(id cli.ToolID) {
	if call := t.last[id]; call != nil && call.ended {
		call.digest = ""
	}
}

// next returns an unused ID for the events of a call. id is the ID that the agent gave the call.
func (t *tools) next(id cli.ToolID) cli.ToolID {
	uses := 1
	if before := t.last[id]; before != nil {
		uses = before.uses + 1
	}
	next := id
	if uses > 1 {
		next = numbered(id, uses)
	}
	for n := uses + 1; t.used[next]; n++ {
		next = numbered(id, n)
	}
	return next
}

func numbered(id cli.ToolID, n int) cli.ToolID { return cli.ToolID(fmt.Sprintf("%s#%d", id, n)) }

// running returns the running call to which the agent gave this ID, or nil.
func (t *tools) running(id cli.ToolID) *toolCall {
	if call := t.last[id]; call != nil && !call.ended {
		return call
	}
	return nil
}

func (t *tools) end(call *toolCall) {
	call.ended = true
	t.open = slices.DeleteFunc(t.open, func(one *toolCall) bool { return one == call })
}

// eventID returns the ID that events use for the call to which the agent gave id. If the agent gave id to several
// calls, eventID returns the ID of the latest call.
func (t *tools) eventID(id cli.ToolID) cli.ToolID {
	if call := t.last[id]; call != nil {
		return call.id
	}
	return id
}

// requestedID returns the ID that events use for the call for which the agent requests an approval. If the last call
// with id has ended, the approval is for the next call with id, which may not have started yet.
func (t *tools) requestedID(id cli.ToolID) cli.ToolID {
	if call := t.last[id]; call != nil && call.ended {
		return t.next(id)
	}
	return t.eventID(id)
}

func callDigest(t cli.ToolStarted) string { return cli.Digest(t.Name, t.Input) }
