package scenario

import "time"

// Step is one line of a scenario. All types of steps are in this file and in fault.go.
type Step interface{ isStep() }

// Token identifies a prompt, for example p17. The judge finds the token in the words of the answer, such as p17w3, and
// in the names of the effects that the prompt causes, such as p17.3.
type Token string

// Person is the name of a user in a scenario.
type Person string

// The users in every scenario.
const (
	Owner   Person = "owner"
	Ann     Person = "ann"     // a user who may send prompts and decide requests
	Bob     Person = "bob"     // a user who may only read
	Mallory Person = "mallory" // a stranger, who may do nothing
)

func (Person) values() []string { return []string{"owner", "ann", "bob", "mallory"} }

// Place is a chat or a topic. It is the name of a user (which means the user's private chat), the name of a group, or
// the names of a forum and a topic, such as lab/red. An empty Place means the private chat of the user who acts.
type Place string

// ChatKind is the kind of a chat.
type ChatKind string

// ChatKind values.
const (
	Group      ChatKind = "group" // a small group, which may become a supergroup
	Supergroup ChatKind = "supergroup"
	Forum      ChatKind = "forum" // a supergroup with topics
)

func (ChatKind) values() []string { return []string{"group", "supergroup", "forum"} }

// Say makes a user send a prompt as text. If ReplyTo is set, the text replies to the answer to that earlier prompt or,
// if there is no answer, to the message with the earlier prompt.
type Say struct {
	By      Person
	In      Place
	ReplyTo Token
	Prompt
}

// Send makes a user send files, with the prompt as their caption. Several photos are sent as an album.
type Send struct {
	By    Person
	In    Place
	Count int
	Media Media
	Prompt
}

// Media is a kind of file.
type Media string

// Media values.
const (
	Photo    Media = "photo"
	Document Media = "document"
)

func (Media) values() []string { return []string{"photo", "document"} }

// Edit makes a user edit a message. Before the edit, the message contains the prompt Old. After the edit, it contains
// the prompt of this step.
type Edit struct {
	By  Person
	Old Token
	Prompt
}

// Reply makes a user reply to the bot's newest message about a prompt. The text is a reason or an answer to a question.
// It is not a prompt.
type Reply struct {
	By   Person
	To   Token
	Text Quoted
}

// Press makes a user press a button on the bot's newest message about a prompt: on the card, a question, or a message
// about the queue. If Old is true, it may also be a button that only an earlier version of the message showed.
type Press struct {
	By     Person
	Old    bool
	Button Button
	Of     Token
}

// PressAny makes a user press the N-th button of a chat, modulo the number of buttons. Buttons of all messages of the
// bot count, beginning with the oldest message. If Old is true, buttons of earlier versions of the messages also count.
type PressAny struct {
	By  Person
	Old bool
	N   int
	In  Place
}

// Type makes a user send a text that is not a prompt, such as a command.
type Type struct {
	By   Person
	Text Quoted
	In   Place
}

// Schedule makes a user create a job with /cron. The job runs once after the time After, or regularly with the interval
// Every. ductor adds the job only after the user has pressed the button cron.add.
type Schedule struct {
	By    Person
	After time.Duration
	Every time.Duration
	In    Place
	Prompt
}

// Deliver calls ductor's webhook. The prompt's token is the idempotency key.
type Deliver struct{ Prompt }

// Redeliver calls ductor's webhook again, with the token of an earlier call.
type Redeliver struct{ Token Token }

// Terminal makes an agent in a user's terminal call ductor's hook. If Does is TerminalAsks, the agent asks for
// permission to run a command, which contains the token. If Does is TerminalEnds, the agent reports the end of its
// turn.
type Terminal struct {
	Does  TerminalAct
	Token Token
}

// TerminalAct is an action of an agent in a terminal.
type TerminalAct string

// TerminalAct values.
const (
	TerminalAsks TerminalAct = "asks"
	TerminalEnds TerminalAct = "ends"
)

func (TerminalAct) values() []string { return []string{"asks", "ends"} }

// Wait pauses the scenario for the duration For.
type Wait struct{ For time.Duration }

// Settle waits until no turn is running and ductor need not call Telegram any more. Requests for permission may be
// open.
type Settle struct{}

// Heal ends all faults.
type Heal struct{}

func (Say) isStep()       {}
func (Send) isStep()      {}
func (Edit) isStep()      {}
func (Reply) isStep()     {}
func (Press) isStep()     {}
func (PressAny) isStep()  {}
func (Type) isStep()      {}
func (Schedule) isStep()  {}
func (Deliver) isStep()   {}
func (Redeliver) isStep() {}
func (Terminal) isStep()  {}
func (Wait) isStep()      {}
func (Settle) isStep()    {}
func (Heal) isStep()      {}
