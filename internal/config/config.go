package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is everything an owner can set. The tags are the keys of the file. Paths that Load and Default
// return are absolute; durations and counts are within the bounds that Validate holds.
type Config struct {
	Telegram    Telegram         `toml:"telegram"`
	Stream      Stream           `toml:"stream"`
	Notify      Notify           `toml:"notify"`
	Queue       Queue            `toml:"queue"`
	Sessions    Sessions         `toml:"sessions"`
	Recovery    Recovery         `toml:"recovery"`
	Budget      Budget           `toml:"budget"`
	Agents      Agents           `toml:"agents"`
	Permissions Permissions      `toml:"permissions"`
	MCP         MCP              `toml:"mcp"`
	Consult     Consult          `toml:"consult"`
	Tracing     Tracing          `toml:"tracing"`
	Health      Health           `toml:"health"`
	Upgrade     Upgrade          `toml:"upgrade"`
	Projects    Projects         `toml:"projects"`
	Files       Files            `toml:"files"`
	Voice       Voice            `toml:"voice"`
	Sandbox     Sandbox          `toml:"sandbox"`
	Users       map[string]User  `toml:"users"`  // by id; nil for none
	Roles       map[string]Role  `toml:"roles"`  // by name; nil for none
	Models      map[string]Alias `toml:"models"` // by name; nil for none
	Heartbeat   Heartbeat        `toml:"heartbeat"`
	Jobs        map[string]Job   `toml:"jobs"` // by name; nil for none
	Webhooks    Webhooks         `toml:"webhooks"`
	Storage     Storage          `toml:"storage"`
	Retention   Retention        `toml:"retention"`
	Log         Log              `toml:"log"`
	Rate        Rate             `toml:"rate"`

	// File is the absolute path of the file that Load read; empty without one.
	File string `toml:"-"`
	// ModelNames are the models that the file names; Load sets them.
	ModelNames []ModelName `toml:"-"`
	// Keys are those of agents, which are kept beside the file; whoever loads the file sets them.
	Keys []AgentKey `toml:"-"`
	// Warnings are sentences on what is allowed but probably not meant; Load sets them.
	Warnings []string `toml:"-"`
}

// Telegram is the bot and who may talk to it.
type Telegram struct {
	Token         Secret   `toml:"token"`      // after Load: from wherever it was found
	TokenFile     string   `toml:"token_file"` // a file that holds the token and nothing else
	APIBase       string   `toml:"api_base"`
	APIFiles      string   `toml:"api_files"` // where a server of one's own with --local keeps its files
	Proxy         Secret   `toml:"proxy"`     // a URL, often with a password in it
	AllowedUsers  []int64  `toml:"allowed_users"`
	AllowedGroups []int64  `toml:"allowed_groups"`
	GroupMembers  string   `toml:"group_members" is:"listed|all"`
	GroupTrigger  string   `toml:"group_trigger" is:"mention|all"`
	AbortWords    []string `toml:"abort_words"` // lower case
	Reactions     bool     `toml:"reactions"`
}

// Stream is how an answer grows in the chat.
type Stream struct {
	IntervalPrivate time.Duration `toml:"interval_private" is:"100ms..1m"`
	IntervalGroup   time.Duration `toml:"interval_group" is:"100ms..1m"`
	MinChars        int           `toml:"min_chars" is:"1..4096"`
	MaxChars        int           `toml:"max_chars" is:"1..100000"`
	MaxMessages     int           `toml:"max_messages" is:"0..100"`
	Idle            time.Duration `toml:"idle" is:"0..1m"`
	SentenceEnds    bool          `toml:"sentence_ends"`
	ParagraphEnds   bool          `toml:"paragraph_ends"`
	ShowThinking    bool          `toml:"show_thinking"`
	Mode            string        `toml:"mode" is:"edit|draft"`
	Display         string        `toml:"display" is:"ask|rich|plain"`
	Footer          []string      `toml:"footer" is:"model|time|cost|tokens"`
	StatusAfter     time.Duration `toml:"status_after" is:"0..1h"`
}

// Notify is when ductor sends a message for its sound.
type Notify struct {
	Mode      string        `toml:"mode" is:"always|long|never"` // "always", "long" or "never"
	Long      time.Duration `toml:"long" is:"1s..24h"`           // of a turn
	Silence   time.Duration `toml:"silence" is:"0..24h"`         // of an agent
	QuietFrom string        `toml:"quiet_from"`                  // "15:04"
	QuietTo   string        `toml:"quiet_to"`
	Alerts    bool          `toml:"alerts"` // of troubles of the machine, to the owner
}

// Queue is how messages wait and merge.
type Queue struct {
	Max         int           `toml:"max" is:"1..1000"` // turns waiting per conversation
	MergeWindow time.Duration `toml:"merge_window" is:"0..10s"`
	AlbumWindow time.Duration `toml:"album_window" is:"0..10s"`
}

// Sessions says when a session is reset and what a new agent learns of it.
type Sessions struct {
	IdleReset     time.Duration `toml:"idle_reset" is:"0..87600h"` // 0 is never
	DailyReset    string        `toml:"daily_reset"`               // "15:04" in local time; empty is never
	HandoffTokens int           `toml:"handoff_tokens" is:"0..1000000"`
	SummaryModel  string        `toml:"summary_model"` // "claude/haiku", or a name in Models; empty is none
	DefaultRole   string        `toml:"default_role"`  // a name in Roles; empty is none
}

// Recovery says what follows when an agent fails and nothing of the turn ran.
type Recovery struct {
	RateLimited string        `toml:"rate_limited" is:"ask|wait|handoff"`
	Retries     int           `toml:"retries" is:"0..10"`       // of a turn whose model is overloaded or fails
	RetryAfter  time.Duration `toml:"retry_after" is:"1s..10m"` // the pause before the first; it doubles
	Failures    int           `toml:"failures" is:"0..100"`     // turns that an agent fails in a row before it is left alone for a while; 0 for never
}

// Budget is what may be spent, in US dollars; 0 is no limit.
type Budget struct {
	Day       float64 `toml:"day" is:"0.01..1e6"`
	Month     float64 `toml:"month" is:"0.01..1e6"`
	UserDay   float64 `toml:"user_day" is:"0.01..1e6"` // of each user
	UserMonth float64 `toml:"user_month" is:"0.01..1e6"`
	JobDay    float64 `toml:"job_day" is:"0.01..1e6"` // of each job
	JobMonth  float64 `toml:"job_month" is:"0.01..1e6"`
}

// Agents is which agents there are and how long they may take.
type Agents struct {
	Default     string        `toml:"default"`
	Fallback    []string      `toml:"fallback"`
	IdleLimit   time.Duration `toml:"idle_limit" is:"1s..720h"`
	MaxLive     int           `toml:"max_live" is:"0..256"`
	MaxMemoryMB int           `toml:"max_memory_mb" is:"0..1048576"`
	TurnTimeout time.Duration `toml:"turn_timeout" is:"1s..168h"`
	Stall       time.Duration `toml:"stall" is:"1s..24h"`
	ToolStall   time.Duration `toml:"tool_stall" is:"1s..168h"`
	Grace       time.Duration `toml:"grace" is:"0..1m"`
	StaleAfter  time.Duration `toml:"stale_after" is:"1m..720h"`
	OrphanAfter time.Duration `toml:"orphan_after" is:"1s..720h"`
	Claude      Claude        `toml:"claude"`
	Codex       Codex         `toml:"codex"`
	Gemini      Gemini        `toml:"gemini"`
	Copilot     Copilot       `toml:"copilot"`
	// ACP are further agents, by the names users know them by: any that speaks the Agent Client Protocol.
	ACP map[string]ACP `toml:"acp"`
}

// Agent is what every agent has.
type Agent struct {
	Enabled bool     `toml:"enabled"`
	Path    string   `toml:"path"` // empty: looked up by name
	Mode    string   `toml:"mode" is:"live|one-shot"`
	Args    []string `toml:"args"`
	Env     []string `toml:"env"` // names, or beginnings of names with a * after them
	Model   string   `toml:"model"`
	Effort  string   `toml:"effort"`
}

// Claude is Claude Code.
type Claude struct{ Agent }

// Gemini is Google's Gemini CLI.
type Gemini struct{ Agent }

// Copilot is GitHub's Copilot CLI.
type Copilot struct{ Agent }

// ACP is an agent that speaks the Agent Client Protocol on its standard input and output.
type ACP struct {
	Enabled bool     `toml:"enabled"`
	Path    string   `toml:"path"`
	Args    []string `toml:"args"` // that make it speak the protocol
	Env     []string `toml:"env"`
	Models  []string `toml:"models"` // to be picked from; empty: what the agent offers
	Model   string   `toml:"model"`
}

// Codex is OpenAI's Codex.
type Codex struct {
	Agent
	Sandbox string `toml:"sandbox" is:"read-only|workspace-write|danger-full-access"`
}

// Permissions is what agents may do without asking.
type Permissions struct {
	Mode         string        `toml:"mode" is:"plan|ask|accept-edits|auto|bypass"`
	AllowedTools []string      `toml:"allowed_tools"`
	DeniedTools  []string      `toml:"denied_tools"`
	AskTimeout   time.Duration `toml:"ask_timeout" is:"10s..168h"`
	Approvers    string        `toml:"approvers" is:"sender|members"`
}

// Tracing is where spans and metrics of turns go.
type Tracing struct {
	URL     string `toml:"url"`      // of an OTLP collector; empty traces nothing
	KeyFrom string `toml:"key_from"` // the variable of ductor's environment with its key
	Content bool   `toml:"content"`  // prompts, answers, and what tools take and give
}

// Health is where monitors ask how ductor is.
type Health struct {
	Listen string `toml:"listen"` // on this machine only; empty: nowhere
}

// Upgrade is where "ductor upgrade --check" asks for the latest release.
type Upgrade struct {
	URL string `toml:"url"` // empty: nowhere
}

// Consult is which models are asked beside sessions.
type Consult struct {
	Group []string `toml:"group"` // as /model takes them; empty: the agents that can be used
}

// MCP is the server of ductor's tools.
type MCP struct {
	Enabled bool `toml:"enabled"` // agents of conversations get the tools
}

// Projects is where agents work.
type Projects struct {
	Roots      []string `toml:"roots"`
	DefaultDir string   `toml:"default_dir"` // after Load never empty
	// Named are projects by name, besides the repositories inside the roots.
	Named   map[string]Project `toml:"named"`
	AddDirs []string           `toml:"add_dirs"` // further directories that all agents may use
}

// Project is a directory that users know by a name. What it sets holds for all below it.
type Project struct {
	Dir     string   `toml:"dir"`     // inside the roots
	Context []string `toml:"context"` // files below Dir that every session begins with
	ToolLists
}

// ToolLists limit which tools agents use. The names are generic, or an agent's own.
type ToolLists struct {
	Tools       []string `toml:"tools"`        // the only tools there are; empty: all
	DeniedTools []string `toml:"denied_tools"` // never used
}

func noToolLists() ToolLists { return ToolLists{Tools: []string{}, DeniedTools: []string{}} }

func defaultProject() Project { return Project{Context: []string{}, ToolLists: noToolLists()} }

// Files is how files of projects reach a chat.
type Files struct {
	Marker bool `toml:"marker"` // agents may name a file in an answer, and are told how
}

// Voice is how speech becomes text: by a program or an endpoint. With neither it does not.
type Voice struct {
	Command []string      `toml:"command"`
	URL     string        `toml:"url"`
	Model   string        `toml:"model"`    // of the endpoint
	KeyFrom string        `toml:"key_from"` // the variable that has its key
	Timeout time.Duration `toml:"timeout" is:"1s..1h"`
	Confirm bool          `toml:"confirm"`
}

// Role is a system prompt by name.
type Role struct {
	Prompt string `toml:"prompt"`
	Append bool   `toml:"append"` // added to the agent's own prompt; false replaces it
	Agent  string `toml:"agent"`  // empty: the conversation's
	Model  string `toml:"model"`  // empty: the conversation's
	ToolLists
}

// Alias is another name for a model.
type Alias struct {
	Use string `toml:"use"` // "claude/haiku", "codex high": what /model takes
	// What is known of that model where its agent does not say; 0 is unknown.
	Context     int     `toml:"context"`      // tokens that it reads
	InputPrice  float64 `toml:"input_price"`  // of a million tokens, in dollars
	OutputPrice float64 `toml:"output_price"` // likewise
}

// ShippedRoles are the names of the roles that there always are; package roles has their texts.
func ShippedRoles() []string { return []string{"codereviewer", "default", "planner"} }

// Summarizes is the agent and the model that summarize what does not fit sessions.handoff_tokens; empty for none.
func (c *Config) Summarizes() (agent, model string) {
	name := c.Sessions.SummaryModel
	if alias, ok := c.Models[name]; ok {
		name = alias.Use
	}
	name, _, _ = strings.Cut(name, " ") // an alias may have an effort
	agent, model, _ = strings.Cut(name, "/")
	return agent, model
}

// RolesDir is the folder with further roles, one in each file *.md: roles beside the file of the configuration. It need not
// exist. Empty without such a file.
func (c *Config) RolesDir() string {
	if c.File == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(c.File), "roles")
}

// hasRole says whether there is a role of this name.
func (c *Config) hasRole(name string) bool {
	if _, ok := c.Roles[name]; ok || slices.Contains(ShippedRoles(), name) {
		return true
	}
	_, err := os.Stat(filepath.Join(c.RolesDir(), name+".md"))
	return err == nil && c.RolesDir() != "" && filepath.Base(name) == name
}

// Storage is what is kept and for how long.
type Storage struct {
	Dir           string `toml:"dir"`
	UploadsMaxMB  int    `toml:"uploads_max_mb" is:"0..2000"` // 0 is as much as the server gives
	RetentionDays int    `toml:"retention_days" is:"1..3650"`
}

// Log is what ductor says of itself.
type Log struct {
	Level  string `toml:"level" is:"debug|info|warn|error"`
	Format string `toml:"format" is:"text|json"`
	File   string `toml:"file"` // empty: standard error
}

// Rate bounds how many calls to Telegram are made; 0 leaves that to what ductor learns from Telegram.
type Rate struct {
	PrivatePerSecond float64 `toml:"private_per_second" is:"0.01..100"`
	PrivateBurst     int     `toml:"private_burst" is:"0..100"`
	GroupPerMinute   float64 `toml:"group_per_minute" is:"0.01..6000"`
	OverallPerSecond float64 `toml:"overall_per_second" is:"0.01..1000"`
}

// The agents that there are.
const (
	agentClaude  = "claude"
	agentCodex   = "codex"
	agentGemini  = "gemini"
	agentCopilot = "copilot"
)

// defaultACP is an agent of a [agents.acp] table before its keys are read.
func defaultACP() ACP {
	return ACP{Enabled: true, Args: []string{}, Env: []string{}, Models: []string{}}
}

// defaults are the values of config.toml.example, paths as they are written there.
func defaults() Config {
	agent := func(mode string) Agent {
		return Agent{Enabled: true, Mode: mode, Args: []string{}, Env: []string{}}
	}
	return Config{
		Telegram: Telegram{
			APIBase:      "https://api.telegram.org",
			AllowedUsers: []int64{}, AllowedGroups: []int64{},
			GroupMembers: "listed", GroupTrigger: "mention",
			AbortWords: []string{"stop", "abort"}, Reactions: true,
		},
		Stream: Stream{
			IntervalPrivate: time.Second, IntervalGroup: 3 * time.Second,
			MinChars: 24, MaxChars: 600, MaxMessages: 4, Idle: 400 * time.Millisecond,
			SentenceEnds: true, ParagraphEnds: true,
			Footer: []string{"model", "time"}, StatusAfter: 2 * time.Second, Mode: "edit", Display: "ask",
		},
		Notify: Notify{Mode: "long", Long: time.Minute, Silence: 5 * time.Minute, Alerts: true},
		Queue:  Queue{Max: 10, MergeWindow: 300 * time.Millisecond, AlbumWindow: 1500 * time.Millisecond},
		Sessions: Sessions{
			HandoffTokens: 8000,
		},
		Recovery: Recovery{RateLimited: "ask", Retries: 3, RetryAfter: 15 * time.Second, Failures: 3},
		Agents: Agents{
			Default: agentClaude, Fallback: []string{agentCodex, agentGemini, agentCopilot},
			IdleLimit: 30 * time.Minute, TurnTimeout: 2 * time.Hour,
			Stall: 5 * time.Minute, ToolStall: 30 * time.Minute, Grace: 2 * time.Second, StaleAfter: 3 * time.Hour, OrphanAfter: 15 * time.Minute,
			Claude: Claude{Agent: agent("live")}, Codex: Codex{Agent: agent("live"), Sandbox: "workspace-write"},
			Gemini: Gemini{Agent: agent("live")}, Copilot: Copilot{Agent: agent("live")},
		},
		Permissions: Permissions{Mode: "ask", AllowedTools: []string{}, DeniedTools: []string{}, AskTimeout: 30 * time.Minute, Approvers: "sender"},
		MCP:         MCP{Enabled: true},
		Consult:     Consult{Group: []string{}},
		Projects:    Projects{Roots: []string{"~/ductor"}, AddDirs: []string{}},
		Files:       Files{Marker: true},
		Voice:       Voice{Command: []string{}, Model: "whisper-1", KeyFrom: "OPENAI_API_KEY", Timeout: 2 * time.Minute},
		Sandbox:     Sandbox{SandboxSetting: defaultSandboxSetting()},
		Heartbeat:   defaultHeartbeat(),
		Webhooks:    Webhooks{Listen: "127.0.0.1:8787"},
		Retention:   Retention{StepsDays: 30, StepsMB: 200, BackupsDays: 7, BackupsMB: 1000},
		Storage:     Storage{RetentionDays: 30},
		Log:         Log{Level: "info", Format: "text"},
	}
}

// defaultRole is a role before its keys are read.
func defaultRole() Role { return Role{Append: true, ToolLists: noToolLists()} }
