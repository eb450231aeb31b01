package scenario

import "time"

// Step is one line of a scenario. This file defines all types.
type Step interface{ isStep() }

// Token identifies a prompt and all its effects: p17.
type Token string

// Person is a user who acts.
type Person string

// The users of every scenario. Mallory is not listed and may do nothing.
const (
	Owner   Person = "owner"
	Ann     Person = "ann"     // a listed user
	Bob     Person = "bob"     // a viewer
	Mallory Person = "mallory" // a stranger
)

func (Person) values() []string { return []string{"owner", "ann", "bob", "mallory"} }

// Place is a chat or topic: the name of a user for the user's private chat, the name of a chat of the options, or the
// name of a chat and a topic, such as lab/red. Empty means the private chat of the user who acts.
type Place string

// ChatKind is the kind of a chat.
type ChatKind string

// Kinds of chats with several users.
const (
	Group      ChatKind = "group" // may migrate
	Supergroup ChatKind = "supergroup"
	Forum      ChatKind = "forum" // has topics
)

func (ChatKind) values() []string { return []string{"group", "supergroup", "forum"} }

// Say makes a user send a prompt as text. If ReplyTo is a prompt, the text replies to the answer of that prompt, or to
// its message if there is no answer.
type Say struct {
	By      Person
	In      Place
	ReplyTo Token
	Prompt
}

// Send makes a user send files with a prompt as the caption. Several photos form an album.
type Send struct {
	By    Person
	In    Place
	Count int
	Media Media
	Prompt
}

// Media is a kind of file.
type Media string

// Kinds of files.
const (
	Photo    Media = "photo"
	Document Media = "document"
)

func (Media) values() []string { return []string{"photo", "document"} }

// Edit makes a user change the message of the prompt Old into another prompt.
type Edit struct {
	By  Person
	Old Token
	Prompt
}

// Reply makes a user reply with plain text to the bot's newest message about a prompt, as a reason or an answer.
type Reply struct {
	By   Person
	To   Token
	Text Quoted
}

// Press makes a user press a button of the bot's newest message about a prompt that shows the button: a card, a
// question, or a queue message. With Old, the message need not show the button any more.
type Press struct {
	By     Person
	Old    bool
	Button Button
	Of     Token
}

// PressAny makes a user press the N-th button of a chat, modulo the number of buttons, counted over all messages of the
// bot from the oldest. With Old, buttons that are no longer shown count, too.
type PressAny struct {
	By  Person
	Old bool
	N   int
	In  Place
}

// Type makes a user send plain text, such as a command.
type Type struct {
	By   Person
	Text Quoted
	In   Place
}

// Schedule makes a user request a job with /cron: once after After, or at each interval Every. The button cron.add
// confirms it.
type Schedule struct {
	By    Person
	After time.Duration
	Every time.Duration
	In    Place
	Prompt
}

// Deliver delivers to the world's webhook. The token is its idempotency key.
type Deliver struct{ Prompt }

// Redeliver repeats the delivery of a token.
type Redeliver struct{ Token Token }

// Terminal is an agent in a terminal. With ductor's hook, it asks whether it may run the token's effect, or reports
// the end of its turn.
type Terminal struct {
	Does  TerminalAct
	Token Token
}

// TerminalAct is an action of an agent in a terminal.
type TerminalAct string

// Actions of agents in terminals.
const (
	TerminalAsks TerminalAct = "asks"
	TerminalEnds TerminalAct = "ends"
)

func (TerminalAct) values() []string { return []string{"asks", "ends"} }

// Wait waits for a time.
type Wait struct{ For time.Duration }

// Settle waits until no turn runs and no call is due. An approval may be open.
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
