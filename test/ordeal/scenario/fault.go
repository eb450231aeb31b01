package scenario

import "time"

// Stop ends ductor, and starts it again after the time Down. If Point is set, ductor ends when this event has happened
// N times from now.
type Stop struct {
	How   Ending
	Point Point
	N     int
	Down  time.Duration
}

// Ending is how ductor ends.
type Ending string

// Ending values. Power also ends the agents and the runner, and loses all data that was not flushed to the disk.
const (
	Crash   Ending = "crash"
	Power   Ending = "power"
	Restart Ending = "restart" // ductor gets SIGTERM
	Upgrade Ending = "upgrade" // like Restart, but ductor starts with another build
)

func (Ending) values() []string { return []string{"crash", "power", "restart", "upgrade"} }

// Point is a kind of event. ductor ends right after such an event.
type Point string

// Point values.
const (
	AtCall   Point = "call"   // Telegram has performed a call
	AtWrite  Point = "write"  // ductor has written to the database file or its log
	AtFlush  Point = "flush"  // ductor has flushed the database file or its log
	AtOutput Point = "output" // an agent has printed output
)

func (Point) values() []string { return []string{"call", "write", "flush", "output"} }

// A Telegram step makes calls of ductor to Telegram fail.
type Telegram struct {
	Fault  TelegramFault
	For    time.Duration // value of retry_after, delay of the response, or duration of a ban or an outage
	Method string        // method whose calls fail; empty for all methods
	Skip   int           // number of calls that succeed before the first failure
	Times  int           // number of calls that fail; 0 means 1
}

// TelegramFault is a way in which a call fails.
type TelegramFault string

// TelegramFault values. If the name contains "after", the call takes effect before it fails.
const (
	TooMany TelegramFault = "429"
	// TooManyUnseen is like TooMany, but the connection breaks, so that the bot does not learn how long to wait.
	TooManyUnseen TelegramFault = "429-unseen"
	// Ban rejects all calls for the duration Telegram.For. retry_after is the remaining time of the ban.
	Ban          TelegramFault = "ban"
	LimitsStrict TelegramFault = "strict" // at most one call a second in each chat; the next Heal lifts the limit
	LimitsReal   TelegramFault = "real"   // the real Telegram's limits, as measured by users; the next Heal lifts them
	ServerError  TelegramFault = "500"
	BadGateway   TelegramFault = "502"
	GatewayAfter TelegramFault = "502-after"
	DropBefore   TelegramFault = "drop-before"
	DropAfter    TelegramFault = "drop-after"
	Half         TelegramFault = "half" // takes effect, but only half of the response arrives
	Hang         TelegramFault = "hang"
	Late         TelegramFault = "late" // takes effect at once, but the response has the delay Telegram.For
	Away         TelegramFault = "away" // Telegram is unreachable for the duration Telegram.For
)

func (TelegramFault) values() []string {
	return []string{"429", "429-unseen", "ban", "strict", "real", "500", "502", "502-after", "drop-before",
		"drop-after", "half", "hang", "late", "away"}
}

// An Updates step changes how Telegram delivers the next N updates.
type Updates struct {
	How UpdateFault
	N   int
}

// UpdateFault is a way in which Telegram delivers updates wrongly.
type UpdateFault string

// UpdateFault values.
const (
	Duplicate UpdateFault = "duplicate" // Telegram sends acknowledged updates again
	Reorder   UpdateFault = "reorder"   // Telegram sends the updates of one response in the wrong order
	Lag       UpdateFault = "lag"       // Telegram delays the updates, and sends all of them N steps later
)

func (UpdateFault) values() []string { return []string{"duplicate", "reorder", "lag"} }

// Happen is an event in a chat.
type Happen struct {
	In   Place
	What Event
}

// Event is the kind of an event in a chat.
type Event string

// Event values: a user blocks the bot, a group becomes a supergroup or removes the bot, and a topic is closed or
// deleted. Some events can be reverted.
const (
	Blocks    Event = "blocks"
	Unblocks  Event = "unblocks"
	Migrates  Event = "migrates"
	Kicks     Event = "kicks"
	Readmits  Event = "readmits"
	Closes    Event = "closes"
	Reopens   Event = "reopens"
	Deletes   Event = "deletes"
	Restricts Event = "restricts"
)

func (Event) values() []string {
	return []string{"blocks", "unblocks", "migrates", "kicks", "readmits", "closes", "reopens", "deletes", "restricts"}
}

// A Disk step makes the disk of the database fail. If Fault is DiskSlow or For is zero, Skip and Times select the
// operations that fail. Otherwise, all operations fail for the duration For.
type Disk struct {
	Fault DiskFault
	For   time.Duration // how long the disk fails; for DiskSlow, how long each flush takes
	Skip  int           // number of operations that succeed before the first failure
	Times int           // number of operations that fail; 0 means 1
}

// DiskFault is a way in which a disk fails.
type DiskFault string

// DiskFault values.
const (
	DiskFull  DiskFault = "full"
	DiskEIO   DiskFault = "eio"
	DiskFsync DiskFault = "fsync" // a flush fails, and the data may be lost
	DiskSlow  DiskFault = "slow"  // each flush takes as long as Disk.For
)

func (DiskFault) values() []string { return []string{"full", "eio", "fsync", "slow"} }

// Clock moves the wall clock forward by a duration, or back if the duration is negative.
type Clock struct{ By time.Duration }

// Suspend suspends the machine: no process runs, while the wall clock continues.
type Suspend struct{ For time.Duration }

// Kill kills processes with SIGKILL: all agents, the runner, or the agent that runs the prompt with the token in Of.
type Kill struct {
	What Victim
	Of   Token
}

// Victim selects the processes that Kill kills.
type Victim string

// Victim values.
const (
	Agent  Victim = "agent"
	Agents Victim = "agents"
	Runner Victim = "runner"
)

func (Victim) values() []string { return []string{"agent", "agents", "runner"} }

func (Stop) isStep()     {}
func (Telegram) isStep() {}
func (Updates) isStep()  {}
func (Happen) isStep()   {}
func (Disk) isStep()     {}
func (Clock) isStep()    {}
func (Suspend) isStep()  {}
func (Kill) isStep()     {}
