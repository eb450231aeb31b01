package scenario

import "time"

// Step is one line of a scenario. The types of this file are all there are.
type Step interface{ isStep() }

// Token marks a prompt and all that comes of it: p17.
type Token string

// Person is who acts.
type Person string

// The users of every scenario. Mallory is in no list and may do nothing.
const (
	Owner   Person = "owner"
	Ann     Person = "ann"     // a listed user
	Bob     Person = "bob"     // a viewer
	Mallory Person = "mallory" // a stranger
)

func (Person) values() []string { return []string{"owner", "ann", "bob", "mallory"} }

// Place is where something happens: the private chat of a user by the user's name, a chat of the options by its name, or a
// topic of it: lab/red. Empty is the private chat of the user who acts.
type Place string

// ChatKind is the kind of a chat.
type ChatKind string

// The kinds of chats with several users.
const (
	Group      ChatKind = "group" // may migrate
	Supergroup ChatKind = "supergroup"
	Forum      ChatKind = "forum" // has topics
)

func (ChatKind) values() []string { return []string{"group", "supergroup", "forum"} }

// Say is a user who sends a prompt as text. ReplyTo is a prompt whose answer, or else whose own message, it replies to.
type Say struct {
	By      Person
	In      Place
	ReplyTo Token
	Prompt
}

// Send is a user who sends files with a prompt as their caption. Several photos are an album.
type Send struct {
	By    Person
	In    Place
	Count int
	Media Media
	Prompt
}

// Media is a kind of file.
type Media string

// The kinds of files.
const (
	Photo    Media = "photo"
	Document Media = "document"
)

func (Media) values() []string { return []string{"photo", "document"} }

// Edit is a user who changes the message of the prompt Old into another prompt.
type Edit struct {
	By  Person
	Old Token
	Prompt
}

// Reply is a user who replies with plain words to the newest message of the bot about a prompt: a reason, or an answer.
type Reply struct {
	By   Person
	To   Token
	Text Quoted
}

// Press is a user who presses a button of the newest message of the bot about a prompt that shows one: of its card, of a
// question, of its place in the queue. With Old the button may be gone: it is one that the message ever showed.
type Press struct {
	By     Person
	Old    bool
	Button Button
	Of     Token
}

// PressAny is a user who presses any button of a chat: number N modulo their number, counted over all messages of the bot from
// the oldest on. With Old the buttons are all that were ever shown.
type PressAny struct {
	By  Person
	Old bool
	N   int
	In  Place
}

// Type is a user who sends plain text, such as a command.
type Type struct {
	By   Person
	Text Quoted
	In   Place
}

// Schedule is a user who asks for a job by /cron: once After so long, or Every so often. The button cron.add confirms it.
type Schedule struct {
	By    Person
	After time.Duration
	Every time.Duration
	In    Place
	Prompt
}

// Deliver is a delivery to the webhook of the world. Its idempotency key is the token.
type Deliver struct{ Prompt }

// Redeliver repeats the delivery of a token.
type Redeliver struct{ Token Token }

// Terminal is an agent in a terminal that asks by ductor's hook whether it may run the effect of the token, or ends its turn.
type Terminal struct {
	Does  TerminalAct
	Token Token
}

// TerminalAct is what an agent in a terminal does.
type TerminalAct string

// What an agent in a terminal does.
const (
	TerminalAsks TerminalAct = "asks"
	TerminalEnds TerminalAct = "ends"
)

func (TerminalAct) values() []string { return []string{"asks", "ends"} }

// Wait lets time pass.
type Wait struct{ For time.Duration }

// Settle waits until nothing happens any more: no turn runs, no call is due, but an approval may wait.
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
