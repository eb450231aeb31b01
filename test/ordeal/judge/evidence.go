package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// Evidence contains everything that was observed in a scenario. Package simulated or package real, which runs the
// scenario, collects the evidence when all faults have ended and all work is done. Evidence can be stored as JSON.
type Evidence struct {
	Scenario scenario.Scenario
	Began    time.Time
	Ended    time.Time

	// Chats and Calls come from the simulated Telegram.
	Chats     []Chat
	Sent      []Sent
	Presses   []Press
	Calls     []telegram.Call
	Documents map[string]string // contents of documents that the bot sent; the key is the FileID of their Media
	Pending   int               // number of updates that the bot did not acknowledge
	Faults    Faults

	// Agents contains the actions of agents, in order of time.
	Agents []AgentEvent

	// Stops contains the times at which ductor ended, in order.
	Stops []Stop

	// Files contains the files in the project, by path.
	Files map[string]string

	// Secret is a secret of the agents. It must appear neither in the chats nor in Texts. Texts contains logs, rows of
	// the database, and files in the state directory, by name.
	Secret string
	Texts  map[string]string

	// Left lists leftovers: processes, goroutines, descriptors, files and locks. Troubles lists other problems: a panic,
	// a failed start, or work that never ends.
	Left     []string
	Troubles []string

	Stored Stored
}

// Chat is a chat with all its messages.
type Chat struct {
	Name    scenario.Place // name of the chat, such as owner, ann, team or lab
	ID      telegram.ChatID
	Topics  map[telegram.TopicID]scenario.Place // places such as lab/red; the topic General has the name of the chat
	History []telegram.Message                  // all messages with all versions, including deleted messages
	// Hurt means that the chat may show less than it should: the bot was blocked or removed, or the chat was deleted or
	// got a new ID, and this event was not reverted.
	Hurt bool
}

// Webhook represents the callers of ductor's webhook. Evidence.Sent contains each call that ductor accepted, as a
// message from Webhook with the ID 0.
const Webhook scenario.Person = "webhook"

// Sent is a message of a user. If several messages form one prompt, Sent is the first of them.
type Sent struct {
	Step  int
	By    scenario.Person
	In    scenario.Place // conversation of the message; owner means the owner's private chat
	Token scenario.Token // empty for commands and replies
	Old   scenario.Token // for an edit: the prompt that the new prompt replaces
	Text  string
	Chat  telegram.ChatID
	ID    telegram.MessageID
	At    time.Time
}

// Press is a button that a user has pressed.
type Press struct {
	Step    int
	By      scenario.Person
	In      scenario.Place
	Chat    telegram.ChatID
	Message telegram.MessageID
	Label   string
	Data    string
	Text    string // text of the message when the button was pressed
	At      time.Time
	// Answer is the bot's answer to the button. Answered is false if no answer came in time.
	Answer   string
	Answered bool
}

// AgentEvent is an event from an agent's own log.
type AgentEvent struct {
	At    time.Time
	Agent string // name of the agent, such as claude
	Run   string // ID of the process
	Token scenario.Token
	What  What
	Name  string // the effect's name, such as p17.3 (see scenario.Token.Effect); meaningless for Got and Done
}

// What names the kind of an AgentEvent, for example "effect".
type What string

// Values of type What. Package simulated records all of these events. Package real does not record Allowed and Denied.
const (
	Got     What = "got"     // the agent got the prompt
	Effect  What = "effect"  // the agent ran a command or wrote a file
	Allowed What = "allowed" // the agent got the permission to run a command
	Denied  What = "denied"  // the agent did not get the permission to run a command
	Done    What = "done"    // the turn succeeded, and all its text was written
)

// Stop is an end of a ductor process.
type Stop struct {
	How scenario.Ending
	At  time.Time // when the process ended
	Up  time.Time // when the next process started
}

// Faults contains the times at which faults of the scenario took effect.
type Faults struct {
	Disk []DiskFailure // in order of time; nil in package real, which does not observe these calls
	Cuts []time.Time   // times at which connections to Telegram broke; a call may have been lost
}

// DiskFailure is a call to the disk that failed or was delayed because of a fault of the scenario.
type DiskFailure struct {
	Fault scenario.DiskFault
	At    time.Time
}

// Violation is a violated rule.
type Violation struct {
	Rule   string
	Token  scenario.Token // token of the prompt; empty if the violation is not about a prompt
	Detail string
}

func (v Violation) String() string {
	if v.Token == "" {
		return v.Rule + ": " + v.Detail
	}
	return v.Rule + " (" + string(v.Token) + "): " + v.Detail
}

// Rule checks one promise of ductor.
type Rule struct {
	Name    string
	Promise string // the promise as docs/reliability.md states it
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
