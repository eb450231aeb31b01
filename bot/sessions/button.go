package sessions

import (
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the action of a Screen's buttons.
const Action = "S"

// op is the operation of a button.
type op string

const (
	opList    op = "l"
	opOpen    op = "o"
	opResume  op = "r"
	opPin     op = "p"
	opArchive op = "a"
	opExport  op = "m"
	opJSON    op = "j" // on older messages: it exported JSON
	opRename  op = "n" // explains how to rename
	opTurns   op = "t" // lists the turns at which the session can be forked
	opFork    op = "f" // the key is the id of a turn
	opDelete  op = "d" // asks for confirmation
	opDeleted op = "D"

	opElsewhere op = "e" // lists the user's sessions in other chats
	opMoving    op = "x" // asks for confirmation
	opMove      op = "X"

	opTerminal op = "T" // lists the sessions that agents store
	opStored   op = "R" // continues a stored session; the key is the agent, the argument the session's id
	opReported op = "V" // like opStored, on a terminal's report, which stays
)

// pressed is the parsed data of a button.
type pressed struct {
	op  op
	key string // id of the session or turn
	arg string
}

// newButton returns a button. It does not check the length of the data, because ids of sessions and turns are short.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// storedButton returns a button that continues an agent's stored session. It returns false if the agent's session id
// is too long for a button.
func storedButton(text string, do op, agent cli.Agent, id cli.AgentSessionID) (tgapi.Button, bool) {
	b := newButton(text, do, string(agent), string(id))
	return b, len(b.Data) <= tgapi.DataLimit
}

// OpenButton returns a button that opens the page of a session.
func OpenButton(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	return newButton(p.Text("common.back"), opOpen, string(id), "")
}

// listButton returns a button that opens the list of sessions.
func listButton(p lang.Printer) tgapi.Button {
	return newButton(p.Text("common.back"), opList, "", listed{}.arg())
}

func parseButton(data string) (pressed, bool) {
	parts := strings.SplitN(data, ":", 3)
	if len(parts) != 3 {
		return pressed{}, false
	}
	return pressed{op: op(parts[0]), key: parts[1], arg: parts[2]}, true
}

// listed identifies a page of a list: its number, whether it shows archived sessions, and the search words.
type listed struct {
	page     int
	archived bool
	words    string
}

// wordsCarried limits the search words in a button, in bytes. The other pages of a longer search use only its first
// words.
const wordsCarried = 40

func (l listed) arg() string {
	kind := "n"
	if l.archived {
		kind = "a"
	}
	words := l.words
	for len(words) > wordsCarried {
		i := strings.LastIndexByte(strings.TrimSpace(words), ' ')
		if i < 0 {
			words = render.Cut(words, wordsCarried/4)
			break
		}
		words = words[:i]
	}
	return kind + strconv.Itoa(l.page) + " " + words
}

func parseListed(arg string) listed {
	head, words, _ := strings.Cut(arg, " ")
	l := listed{words: words, archived: strings.HasPrefix(head, "a")}
	if len(head) > 1 {
		l.page, _ = tgapi.ButtonNumber(head[1:])
	}
	return l
}

// changes reports whether a button changes sessions or the current session.
func (o op) changes() bool {
	switch o {
	case opResume, opPin, opArchive, opFork, opDelete, opDeleted, opMove, opStored, opReported:
		return true
	}
	return false
}
