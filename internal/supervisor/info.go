package supervisor

import "time"

// Info is what can be told of a run now.
type Info struct {
	ID         string            `json:"id"`
	Labels     map[string]string `json:"labels,omitempty"`
	Command    []string          `json:"command,omitempty"` // without secrets
	Dir        string            `json:"dir,omitempty"`
	PID        int               `json:"pid"`        // the agent's
	Supervisor int               `json:"supervisor"` // the supervisor's process id
	Started    time.Time         `json:"started"`
	Protocol   Protocol          `json:"protocol"` // what its supervisor speaks
	Limits     Limits            `json:"limits"`

	Supervised bool `json:"supervised"` // its supervisor runs
	Alive      bool `json:"alive"`      // the agent runs
	Attached   bool `json:"attached"`   // some client owns it
	AttachedBy int  `json:"attached_by,omitempty"`
	Processes  int  `json:"processes"` // the agent and everything below it
	// Members are the first of those, the oldest first; an older supervisor does not tell them.
	Members   []Member `json:"members,omitempty"`
	Memory    int64    `json:"memory"`  // bytes resident, of all of those; shared pages count for each
	Spooled   int64    `json:"spooled"` // bytes of output on disk
	OutputEnd int64    `json:"output_end"`
	// InputEnd is how many bytes of standard input were taken from owners: what is counted is written to the
	// agent's pipe whatever becomes of the client, what is not never will be. After an Attach nothing of an
	// earlier owner's is added. Zero when the supervisor is gone: only it knows.
	InputEnd    int64 `json:"input_end,omitempty"`
	InputClosed bool  `json:"input_closed,omitempty"` // end of file was asked for, and comes after InputEnd

	Status *Status `json:"status,omitempty"` // once the agent exited
	// Problem says why this is all there is to know: a supervisor of another version, a damaged directory.
	Problem string `json:"problem,omitempty"`
}

// Member is a process of a run.
type Member struct {
	PID  int    `json:"pid"` // in the place of the run
	Name string `json:"name"`
}

// mostMembers is how many processes of a run are told by name.
const mostMembers = 16
