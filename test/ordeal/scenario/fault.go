package scenario

import "time"

// Stop ends ductor, and starts it again after Down. If Point is set, ductor ends at the N-th moment of this kind from
// now on.
type Stop struct {
	How   Ending
	Point Point
	N     int
	Down  time.Duration
}

// Ending is the way in which ductor ends.
type Ending string

// Ending values. Power also ends agents and the runner, and loses all data that was not flushed.
const (
	Crash   Ending = "crash"
	Power   Ending = "power"
	Restart Ending = "restart" // SIGTERM
	Upgrade Ending = "upgrade" // a restart with another build
)

func (Ending) values() []string { return []string{"crash", "power", "restart", "upgrade"} }

// Point is a kind of moment at which ductor ends.
type Point string

// Point values: directly after the N-th call to Telegram took effect, write to the database file or its log, flush of
// one of these files, or piece of output of an agent.
const (
	AtCall   Point = "call"
	AtWrite  Point = "write"
	AtFlush  Point = "flush"
	AtOutput Point = "output"
)

func (Point) values() []string { return []string{"call", "write", "flush", "output"} }

// Telegram makes Times calls of Method fail, after Skip successful ones. An empty Method means any method, and zero
// Times means one call. For is the value of retry_after, the delay of the response, or the duration of a ban or an
// outage.
type Telegram struct {
	Fault  TelegramFault
	For    time.Duration
	Method string
	Skip   int
	Times  int
}

// TelegramFault is the failure of a call.
type TelegramFault string

// TelegramFault values. Calls with "after" have taken effect.
const (
	TooMany       TelegramFault = "429"
	TooManyUnseen TelegramFault = "429-unseen" // the connection breaks, and early calls are rejected
	// during For, every call is rejected with the remaining time as retry_after
	Ban          TelegramFault = "ban"
	LimitsStrict TelegramFault = "strict" // hidden limits of one call a second in each chat, until heal
	LimitsReal   TelegramFault = "real"   // limits that users have measured, until heal
	ServerError  TelegramFault = "500"
	BadGateway   TelegramFault = "502"
	GatewayAfter TelegramFault = "502-after"
	DropBefore   TelegramFault = "drop-before"
	DropAfter    TelegramFault = "drop-after"
	Half         TelegramFault = "half" // carried out, but only half of the response arrives
	Hang         TelegramFault = "hang"
	Late         TelegramFault = "late" // carried out at once, but the response arrives after For
	Away         TelegramFault = "away" // no connection during For
)

func (TelegramFault) values() []string {
	return []string{"429", "429-unseen", "ban", "strict", "real", "500", "502", "502-after", "drop-before",
		"drop-after", "half", "hang", "late", "away"}
}

// Updates disturbs the delivery of the next N updates.
type Updates struct {
	How UpdateFault
	N   int
}

// UpdateFault is a way to deliver updates.
type UpdateFault string

// UpdateFault values.
const (
	Duplicate UpdateFault = "duplicate" // again after they were acknowledged
	Reorder   UpdateFault = "reorder"   // in another order within the batch
	Lag       UpdateFault = "lag"       // all at the same time, N steps later
)

func (UpdateFault) values() []string { return []string{"duplicate", "reorder", "lag"} }

// Happen is an event in a chat.
type Happen struct {
	In   Place
	What Event
}

// Event is the kind of an event in a chat.
type Event string

// Events in chats: a user blocks the bot, a group migrates or removes the bot, a topic is closed or deleted; and
// their reversals.
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

// Disk makes the disk of the database fail, for the time For or for Times operations after Skip successful ones. Zero
// Times means one operation.
type Disk struct {
	Fault DiskFault
	For   time.Duration
	Skip  int
	Times int
}

// DiskFault is the failure of a disk.
type DiskFault string

// Failures of disks.
const (
	DiskFull  DiskFault = "full"
	DiskEIO   DiskFault = "eio"
	DiskFsync DiskFault = "fsync" // a flush fails, and its data may be lost
	DiskSlow  DiskFault = "slow"  // each flush takes For
)

func (DiskFault) values() []string { return []string{"full", "eio", "fsync", "slow"} }

// Clock sets the wall clock forward or back.
type Clock struct{ By time.Duration }

// Suspend stops the machine: no process runs, but the wall clock continues.
type Suspend struct{ For time.Duration }

// Kill ends processes with SIGKILL: the agent that runs the prompt Of, all agents, or the runner.
type Kill struct {
	What Victim
	Of   Token
}

// Victim is a process.
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
