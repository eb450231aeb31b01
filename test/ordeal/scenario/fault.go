package scenario

import "time"

// Stop ends ductor and starts it again Down later. With a Point it does not happen at once, but at the N-th such moment from now.
type Stop struct {
	How   Ending
	Point Point
	N     int
	Down  time.Duration
}

// Ending is how ductor ends.
type Ending string

// How ductor ends. Power ends agents and the runner too, and loses all that was not flushed.
const (
	Crash   Ending = "crash"
	Power   Ending = "power"
	Restart Ending = "restart" // SIGTERM
	Upgrade Ending = "upgrade" // restart with another build
)

func (Ending) values() []string { return []string{"crash", "power", "restart", "upgrade"} }

// Point is a kind of moment at which ductor ends.
type Point string

// The kinds of moments: right after the N-th call to Telegram took effect, write to the database file or its log, flush of one,
// or piece of output of an agent.
const (
	AtCall   Point = "call"
	AtWrite  Point = "write"
	AtFlush  Point = "flush"
	AtOutput Point = "output"
)

func (Point) values() []string { return []string{"call", "write", "flush", "output"} }

// Telegram makes calls go wrong: Times calls of Method (any if empty; once if zero) after Skip that go well. For is what
// retry_after says, how long the answer is late, or how long a ban or an absence lasts.
type Telegram struct {
	Fault  TelegramFault
	For    time.Duration
	Method string
	Skip   int
	Times  int
}

// TelegramFault is what goes wrong with a call.
type TelegramFault string

// What goes wrong with calls. Those with "after" have taken effect.
const (
	TooMany       TelegramFault = "429"
	TooManyUnseen TelegramFault = "429-unseen" // the connection breaks, and calls that come too early are refused
	Ban           TelegramFault = "ban"        // every call in the time For is refused with the rest of it as retry_after
	LimitsStrict  TelegramFault = "strict"     // hidden limits: one call a second in each chat, from now until heal
	LimitsReal    TelegramFault = "real"       // as people measured them, from now until heal
	ServerError   TelegramFault = "500"
	BadGateway    TelegramFault = "502"
	GatewayAfter  TelegramFault = "502-after"
	DropBefore    TelegramFault = "drop-before"
	DropAfter     TelegramFault = "drop-after"
	Half          TelegramFault = "half" // done, and half of the answer comes
	Hang          TelegramFault = "hang"
	Late          TelegramFault = "late" // done at once, and the answer comes For later
	Away          TelegramFault = "away" // no connection for the time For
)

func (TelegramFault) values() []string {
	return []string{"429", "429-unseen", "ban", "strict", "real", "500", "502", "502-after", "drop-before", "drop-after", "half", "hang", "late", "away"}
}

// Updates makes Telegram deliver updates in a bad way: the next N updates.
type Updates struct {
	How UpdateFault
	N   int
}

// UpdateFault is how updates are delivered.
type UpdateFault string

// How updates are delivered.
const (
	Duplicate UpdateFault = "duplicate" // again, after they were acknowledged
	Reorder   UpdateFault = "reorder"   // in another order within the batch
	Lag       UpdateFault = "lag"       // all at once, N steps later
)

func (UpdateFault) values() []string { return []string{"duplicate", "reorder", "lag"} }

// Happen is something that happens to a chat.
type Happen struct {
	In   Place
	What Event
}

// Event is what happens to a chat.
type Event string

// What happens to chats: a user blocks the bot, a group migrates or throws the bot out, a topic is closed or deleted; and the way back.
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

// Disk makes the disk below the database go wrong: for the time For, or Times operations (once if zero) after Skip that go well.
type Disk struct {
	Fault DiskFault
	For   time.Duration
	Skip  int
	Times int
}

// DiskFault is what goes wrong with a disk.
type DiskFault string

// What goes wrong with disks.
const (
	DiskFull  DiskFault = "full"
	DiskEIO   DiskFault = "eio"
	DiskFsync DiskFault = "fsync" // a flush fails, and what it should have kept may be lost
	DiskSlow  DiskFault = "slow"  // each flush takes For
)

func (DiskFault) values() []string { return []string{"full", "eio", "fsync", "slow"} }

// Clock sets the clock on the wall forward or back.
type Clock struct{ By time.Duration }

// Suspend stops the machine: no process runs, and the clock on the wall goes on.
type Suspend struct{ For time.Duration }

// Kill ends processes with SIGKILL: the agent that runs the prompt Of, all agents, or the runner.
type Kill struct {
	What Victim
	Of   Token
}

// Victim is a process.
type Victim string

// The processes to kill.
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
