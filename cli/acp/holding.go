package acp

// Holding is how an agent is held to a permission mode. Empty fields change nothing.
type Holding struct {
	Mode   string            `toml:"mode"`   // the agent's own mode
	Option string            `toml:"option"` // the id of another option of its sessions, and
	Value  string            `toml:"value"`  // the value of that option
	Env    map[string]string `toml:"env"`    // added to the environment of its process
	Args   []string          `toml:"args"`   // added to its command line
}
