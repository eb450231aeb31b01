package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// Evidence contains the observations of a run, collected after all faults have ended and all work is done. It can be
// encoded as JSON.
type Evidence struct {
	Scenario scenario.Scenario
	Began    time.Time
	Ended    time.Time

	// Telegram's chats and calls.
	Chats     []Chat
	Sent      []Sent
	Presses   []Press
	Calls     []telegram.Call
	Documents map[string]string // contents of the bot's documents, by the FileID of their Media
	Pending   int               // number of updates that the bot did not acknowledge
	Faults    Faults

	// Actions of agents, in order of time.
	Agents []AgentEvent

	// Stops are the ends of ductor, in order.
	Stops []Stop

	// Files are the project's files, by path.
	Files map[string]string

	// Secret is the world's secret. Texts are other texts that must not contain the secret, by name: logs, rows of the
	// database, files of the state directory. The judge also searches Telegram's messages.
	Secret string
	Texts  map[string]string

	// Left lists leftovers: processes, goroutines, descriptors, files and locks. Troubles lists other problems: a panic,
	// a failed start, or work that never ends.
	Left     []string
	Troubles []string

	Stored Stored
}

// Chat is a chat with its whole history.
type Chat struct {
	Name    scenario.Place // owner, ann, team, lab
	ID      telegram.ChatID
	Topics  map[telegram.TopicID]scenario.Place // lab/red; the General topic is the chat itself
	History []telegram.Message                  // all messages, including deleted ones, with all versions
	// Hurt means that an event of the chat was not reversed: the chat is blocked, deleted or migrated. Then the chat
	// may show less.
	Hurt bool
}

// Webhook is the sender of deliveries to ductor's webhook. Evidence contains the accepted deliveries, which have no ID.
const Webhook scenario.Person = "webhook"

// Sent is a message of a user. A prompt may consist of several messages, of which the first counts.
type Sent struct {
	Step  int
	By    scenario.Person
	In    scenario.Place // the place of the message: owner for the owner's private chat
	Token scenario.Token // empty for commands and replies
	Old   scenario.Token // the prompt that an edit replaces
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
	Text    string // text of the message at that moment
	At      time.Time
	// Answer is the bot's answer. Answered is false if the answer did not arrive in time.
	Answer   string
	Answered bool
}

// AgentEvent is an event in an agent's own log.
type AgentEvent struct {
	At    time.Time
	Agent string // claude
	Run   string // ID of the process
	Token scenario.Token
	What  What
	Name  string // name of the effect, or a word
}

// What is the kind of an agent's event.
type What string

// What values. Worlds always record Effect; a world may not record the others.
const (
	Got     What = "got"     // the agent received the prompt
	Effect  What = "effect"  // the effect Name happened
	Allowed What = "allowed" // a user decided a request for the effect Name
	Denied  What = "denied"
	Done    What = "done" // the turn succeeded and wrote its whole text
)

// Stop is an end of ductor.
type Stop struct {
	How scenario.Ending
	At  time.Time // time of death
	Up  time.Time // start of the next process
}

// Faults are the moments at which faults of the scenario took effect.
type Faults struct {
	Disk []DiskFailure // in order; nil if the world does not observe its disk
	Cuts []time.Time   // connections to Telegram broke, maybe during calls that did not arrive
}

// DiskFailure is a call that the disk failed or delayed because of a fault of the scenario.
type DiskFailure struct {
	Fault scenario.DiskFault
	At    time.Time
}

// Violation is a violated rule.
type Violation struct {
	Rule   string
	Token  scenario.Token // empty if the violation concerns no prompt
	Detail string
}

func (v Violation) String() string {
	if v.Token == "" {
		return v.Rule + ": " + v.Detail
	}
	return v.Rule + " (" + string(v.Token) + "): " + v.Detail
}

// Rule is one condition that must hold.
type Rule struct {
	Name    string
	Promise string // text for docs/reliability.md
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
