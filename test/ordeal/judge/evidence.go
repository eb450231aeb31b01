package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// Evidence is all that a world saw of a run, after the faults ended and all came to rest. It can be written as JSON.
type Evidence struct {
	Scenario scenario.Scenario
	Began    time.Time
	Ended    time.Time

	// What Telegram has and did.
	Chats     []Chat
	Sent      []Sent
	Presses   []Press
	Calls     []telegram.Call
	Documents map[string]string // the content of documents that the bot sent, by the FileID of their Media
	Pending   int               // updates that the bot did not acknowledge

	// What agents did, in order of time.
	Agents []AgentEvent

	// Stops are the ends of ductor, as they happened.
	Stops []Stop

	// Files are those of the project, by path.
	Files map[string]string

	// Secret is the secret of the world; Texts are where it must not be: logs, the rows of the database, files of the state
	// directory, each with its name. Telegram's messages are searched too.
	Secret string
	Texts  map[string]string

	// Database lists what the checks of the database found, Left what is left that should not be (processes, goroutines,
	// descriptors, files, locks), and Troubles what went wrong otherwise: a panic, a start that failed, a world that does not come to rest.
	Database []string
	Left     []string
	Troubles []string

	// Open are the chats in which an approval or a question is open; nil if the world does not know.
	Open map[telegram.ChatID]bool
}

// Chat is a chat and all that was ever in it.
type Chat struct {
	Name    scenario.Place // owner, ann, team, lab
	ID      telegram.ChatID
	Topics  map[telegram.TopicID]scenario.Place // lab/red; the General topic is the chat itself
	History []telegram.Message                  // every message, deleted ones too, with all their versions
	// Hurt is what befell the chat and was not put right: it is blocked, deleted, migrated. Less must be shown there.
	Hurt bool
}

// Webhook sends deliveries to ductor's webhook. Evidence has those that it accepted; they have no ID.
const Webhook scenario.Person = "webhook"

// Sent is a message of a user. Prompts that came in several messages have several; the first one counts.
type Sent struct {
	Step  int
	By    scenario.Person
	In    scenario.Place // where it went: owner for the private chat of the owner
	Token scenario.Token // empty for commands and replies
	Old   scenario.Token // for an edit: the prompt that it replaces
	Text  string
	Chat  telegram.ChatID
	ID    telegram.MessageID
	At    time.Time
}

// Press is a press of a button.
type Press struct {
	Step    int
	By      scenario.Person
	In      scenario.Place
	Chat    telegram.ChatID
	Message telegram.MessageID
	Label   string
	Data    string
	Text    string // what the message showed at that moment
	At      time.Time
	// Answer is the answer of the bot; Answered is false if none came in time.
	Answer   string
	Answered bool
}

// AgentEvent is something that an agent logged itself.
type AgentEvent struct {
	At    time.Time
	Agent string // claude
	Run   string // of the process
	Token scenario.Token
	What  What
	Name  string // of the effect, or a word
}

// What is what an agent logged.
type What string

// What agents log. Effects are certain; a world need not know the others.
const (
	Got     What = "got"     // the prompt arrived as what to do next
	Effect  What = "effect"  // the effect Name happened
	Allowed What = "allowed" // the answer to a request for the effect Name
	Denied  What = "denied"
	Done    What = "done" // the turn ended well: all was said
)

// Stop is an end of ductor.
type Stop struct {
	How scenario.Ending
	At  time.Time // when it was dead
	Up  time.Time // when the next one started
}

// Violation is what must not be.
type Violation struct {
	Rule   string
	Token  scenario.Token // empty where it is about none
	Detail string
}

func (v Violation) String() string {
	if v.Token == "" {
		return v.Rule + ": " + v.Detail
	}
	return v.Rule + " (" + string(v.Token) + "): " + v.Detail
}

// Rule is one thing that must hold.
type Rule struct {
	Name    string
	Promise string // for docs/reliability.md
	check   func(*facts) []Violation
}

// Judge returns all violations, in the order of the rules.
func Judge(e Evidence) (all []Violation) {
	f := gather(e)
	for _, r := range Rules() {
		for _, v := range r.check(f) {
			v.Rule = r.Name
			all = append(all, v)
		}
	}
	return all
}
