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

// Action is the action of the buttons of a Screen.
const Action = "S"

// op is what a button does.
type op string

const (
	opList    op = "l"
	opOpen    op = "o"
	opResume  op = "r"
	opPin     op = "p"
	opArchive op = "a"
	opExport  op = "m"
	opJSON    op = "j" // of older messages: it exported JSON
	opRename  op = "n" // says how
	opTurns   op = "t" // to fork at one of them
	opFork    op = "f" // the key is a turn
	opDelete  op = "d" // asks first
	opDeleted op = "D"

	opElsewhere op = "e" // lists the user's sessions of other chats
	opMoving    op = "x" // asks first
	opMove      op = "X"

	opTerminal op = "T" // lists the sessions that agents keep
	opStored   op = "R" // continues one of them; the key is the agent, the argument its id
	opReported op = "V" // likewise, below a report of a terminal, which stays
)

// pressed is the data of a button.
type pressed struct {
	op  op
	key string // of the session or the turn
	arg string
}

// newButton makes a button. The ids of sessions and turns are short, and so is what else one carries, but for storedButton.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// storedButton continues a session that an agent keeps; false if it cannot carry the agent's id of it.
func storedButton(text string, do op, agent cli.Agent, id cli.AgentSessionID) (tgapi.Button, bool) {
	b := newButton(text, do, string(agent), string(id))
	return b, len(b.Data) <= tgapi.DataLimit
}

// OpenButton is a button that leads back to the page of a session.
func OpenButton(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	return newButton(p.Text("common.back"), opOpen, string(id), "")
}

// listButton leads back to the list of sessions.
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

// listed says which list a page is of: the number of the page, whether the archived ones, and the words it has.
type listed struct {
	page     int
	archived bool
	words    string
}

// wordsCarried is how many bytes of words a button carries. A longer search goes on with its first words.
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

// changes says whether a button changes sessions, or which one is the current one.
func (o op) changes() bool {
	switch o {
	case opResume, opPin, opArchive, opFork, opDelete, opDeleted, opMove, opStored, opReported:
		return true
	}
	return false
}
