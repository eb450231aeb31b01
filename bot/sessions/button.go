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

// Action is the first part of the data of all buttons of this package.
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
	opJSON    op = "j" // exported JSON; only in old messages
	opRename  op = "n" // asks for the new title of the session
	opTurns   op = "t" // lists the turns from which users can fork the session
	opFork    op = "f" // forks the session after a turn; the key is the ID of the turn
	opDelete  op = "d" // asks the user whether to delete the session
	opDeleted op = "D"

	opElsewhere op = "e" // lists the user's sessions in other chats
	opMoving    op = "x" // asks the user whether to move the session to this chat
	opMove      op = "X"

	opTerminal op = "T" // lists the sessions that the agents have stored on this machine
	opStored   op = "R" // continues a session from opTerminal's list; key: agent; arg: the agent's ID of the session
	opReported op = "V" // continues a session like opStored, but shows the page of the session in a new message
)

// pressed is the parsed data of a button.
type pressed struct {
	op  op
	key string // first argument of the operation, such as the ID of a session or turn
	arg string
}

// newButton returns a button. The key and the argument must be short, because Telegram limits the data of a button. IDs
// of sessions and turns are short enough.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// storedButton returns a button that continues a session which an agent has stored. It returns false if the agent's ID
// of the session is too long for the data of a button.
func storedButton(text string, do op, agent cli.Agent, id cli.AgentSessionID) (tgapi.Button, bool) {
	b := newButton(text, do, string(agent), string(id))
	return b, len(b.Data) <= tgapi.DataLimit
}

// OpenButton returns a button with the label "back" that shows the page of a session.
func OpenButton(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	return newButton(p.Text("common.back"), opOpen, string(id), "")
}

// listButton returns a button with the label "back" that shows the list of sessions.
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

// listed identifies a page of the list of sessions.
type listed struct {
	page     int
	archived bool
	words    string
}

// wordsCarried is the maximum length of the search words in a button, in bytes. If the user searches for a longer text,
// the buttons for other pages contain only the first words.
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

// restricted reports whether the operation requires the right to change sessions. The lists of sessions outside of this
// conversation require it too, because users without this right see only the conversation in which they ask.
func (o op) restricted() bool {
	switch o {
	case opResume, opPin, opArchive, opRename, opFork, opDelete, opDeleted, opMove, opStored, opReported,
		opElsewhere, opMoving, opTerminal:
		return true
	}
	return false
}
