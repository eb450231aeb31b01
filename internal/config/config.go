package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/bot/card"
	"ductor/bot/outbox"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/naming"
	"ductor/cli/service"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/keys"
	"ductor/internal/secrets"
	"ductor/internal/trace"
	"ductor/internal/transcribe"
	"ductor/mcp/servers"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/spending"
	"ductor/orchestrator/turn"
)

// Config contains all settings. Each setting is a field. Tags of the field contain the key in the file (toml), the
// default, the check of the value, and when a change applies. The tag "applies" of a table is the default for its
// settings. In a Config from Load or Default, all paths are absolute.
type Config struct {
	Telegram    Telegram                         `toml:"telegram" applies:"after a restart"`
	Stream      Stream                           `toml:"stream" applies:"at once"`
	Notify      Notify                           `toml:"notify" applies:"at once"`
	Queue       Queue                            `toml:"queue" applies:"after a restart"`
	Sessions    sessions.Policy                  `toml:"sessions" applies:"at once"`
	Recovery    turn.Recovery                    `toml:"recovery" applies:"at once"`
	Budget      spending.Budget                  `toml:"budget" applies:"at once"`
	Agents      Agents                           `toml:"agents" applies:"after a restart"`
	Permissions conversation.Permissions         `toml:"permissions" applies:"at once"`
	MCP         MCP                              `toml:"mcp" applies:"after a restart"`
	Consult     Consult                          `toml:"consult" applies:"at once"`
	Tracing     trace.Settings                   `toml:"tracing" applies:"after a restart"`
	Health      Health                           `toml:"health" applies:"after a restart"`
	Upgrade     Upgrade                          `toml:"upgrade" applies:"after a restart"`
	Projects    Projects                         `toml:"projects" applies:"after a restart"`
	Files       Files                            `toml:"files" applies:"after a restart"`
	Voice       transcribe.Settings              `toml:"voice" applies:"after a restart"`
	Sandbox     Sandbox                          `toml:"sandbox" applies:"after a restart"`
	Users       map[string]User                  `toml:"users" applies:"at once"`  // by ID; nil if there are none
	Roles       map[string]orchestrator.Role     `toml:"roles" applies:"at once"`  // by name; nil if there are none
	Models      map[string]naming.Alias          `toml:"models" applies:"at once"` // by name; nil if there are none
	Heartbeat   heartbeat.Settings               `toml:"heartbeat" applies:"at once"`
	Jobs        map[string]heartbeat.JobSettings `toml:"jobs" applies:"at once"` // by name; nil if there are none
	Webhooks    webhook.Settings                 `toml:"webhooks" applies:"after a restart"`
	Storage     Storage                          `toml:"storage" applies:"after a restart"`
	Retention   Retention                        `toml:"retention" applies:"at once"`
	Log         Log                              `toml:"log" applies:"after a restart"`
	Rate        outbox.Settings                  `toml:"rate" applies:"after a restart"`

	// File is the absolute path of the file that Load read, or "".
	File string `toml:"-"`
	// ModelNames lists the names of models in the file. Load sets it.
	ModelNames []ModelName `toml:"-"`
	// Keys are the API keys of agents. The file does not contain them; the caller of Load sets them.
	Keys []keys.Key `toml:"-"`
	// Warnings are sentences about settings that are valid but probably unintended. Load sets them.
	Warnings []string `toml:"-"`
}

// Telegram configures the bot and its users.
type Telegram struct {
	Token          secrets.Value `toml:"token"` // may also come from TokenVariable or TokenFile
	TokenFile      string        `toml:"token_file" check:"path"`
	APIBase        string        `toml:"api_base" default:"https://api.telegram.org" check:"url"`
	APIFiles       string        `toml:"api_files" check:"path"` // directory with the files of a local Bot API server
	Proxy          secrets.Value `toml:"proxy"`                  // a URL, which may contain a password
	Zone           string        `toml:"zone"`                   // IANA name; empty means the machine's zone
	AllowedUsers   []int64       `toml:"allowed_users" applies:"at once"`
	updates.Policy `applies:"at once"`
}

// Check implements checker. It also checks the embedded Policy.
func (t Telegram) Check(problem func(key, format string, args ...any)) {
	if _, err := t.Location(); err != nil {
		problem("zone", "%q is no time zone such as Europe/Paris", t.Zone)
	}
	t.Policy.Check(problem)
}

// Location returns the zone of times that users read and write.
func (t Telegram) Location() (*time.Location, error) {
	if t.Zone == "" {
		return time.Local, nil
	}
	if t.Zone == "Local" {
		return nil, errors.New("Local is no name of a zone")
	}
	return time.LoadLocation(t.Zone)
}

// Stream configures how the chat shows an answer while it grows.
type Stream struct {
	card.Look
	ShowThinking bool                     `toml:"show_thinking"`
	Display      orchestrator.DisplayMode `toml:"display" default:"ask" check:"ask|rich|plain"`
}

// Notify configures which messages make a sound.
type Notify struct {
	Mode orchestrator.NotifyMode `toml:"mode" default:"long" check:"always|long|never"`
	Long time.Duration           `toml:"long" default:"1m" check:"1s..24h"` // minimum duration of a long turn
	// Silence is how long an agent may be silent before users get a notice.
	Silence time.Duration `toml:"silence" default:"5m" check:"0..24h"`
	// Alerts are messages to the owner about problems of the machine.
	Alerts             bool `toml:"alerts" default:"true" applies:"after a restart"`
	orchestrator.Hours      // quiet hours
}

// Queue configures the queue of a conversation. It also configures when several messages become one prompt.
type Queue struct {
	Max         int           `toml:"max" default:"10" check:"1..1000" applies:"at once"` // maximum of waiting turns
	MergeWindow time.Duration `toml:"merge_window" default:"300ms" check:"0..10s"`
	AlbumWindow time.Duration `toml:"album_window" default:"1500ms" check:"0..10s"`
}

// Agents configures the agents, and how long they may take.
type Agents struct {
	service.Settings
	cli.Timing
	Claude  Agent `toml:"claude"`
	Codex   Codex `toml:"codex"`
	Gemini  Agent `toml:"gemini"`
	Copilot Agent `toml:"copilot"`
	// ACP contains further agents, by the names that users see. Any program that speaks the Agent Client Protocol can
	// be an agent.
	ACP map[string]acp.Settings `toml:"acp" applies:"at once"`
}

// Agent configures one of the agents in Agents.Own.
type Agent struct {
	Enabled bool     `toml:"enabled" default:"true"`
	Path    string   `toml:"path" check:"program"` // empty: the agent's usual name in PATH
	Mode    cli.Mode `toml:"mode" default:"live" check:"live|one-shot"`
	Env     []string `toml:"env" check:"variables"` // variables that the agent inherits; may end with *
	// Accounts are additional log-ins of the agent, by name.
	Accounts map[string]cli.AccountSettings `toml:"accounts"`
	orchestrator.AgentDefaults
}

type Codex struct {
	Agent
	Sandbox string `toml:"sandbox" default:"workspace-write" check:"read-only|workspace-write|danger-full-access"`
}

// Health configures an HTTP server from which monitoring systems read ductor's state.
type Health struct {
	Listen string `toml:"listen"` // address on this machine; empty: no server
}

// Upgrade configures where "ductor upgrade --check" finds the version of the latest release.
type Upgrade struct {
	URL string `toml:"url" check:"url" example:"https://example.org/ductor/latest"`
}

// Consult configures the models that users ask with /consult, in addition to the agent of the session.
type Consult struct {
	Group []string `toml:"group"` // names as in /model; empty: all usable agents
}

// MCP configures the MCP servers of agents: the server of ductor's own tools, and others.
type MCP struct {
	Enabled bool `toml:"enabled" default:"true"` // gives ductor's tools to the agents of conversations
	// Servers are additional MCP servers, by name.
	Servers map[string]servers.Settings `toml:"servers"`
}

// Projects configures the directories in which agents work.
type Projects struct {
	Roots      []string `toml:"roots" default:"['~/ductor']" check:"path"`
	DefaultDir string   `toml:"default_dir" check:"path"` // Load replaces an empty value with the first of Roots
	// Named are projects with a name, in addition to the repositories in Roots.
	Named   map[string]orchestrator.ProjectPolicy `toml:"named" applies:"at once"`
	AddDirs []string                              `toml:"add_dirs" check:"path"` // more directories for all agents
}

// Files configures how users get files of projects.
type Files struct {
	Marker bool `toml:"marker" default:"true"` // whether agents can offer files in their answers
}

// Storage configures where ductor stores its state, and for how long.
type Storage struct {
	Dir           string `toml:"dir" check:"path"`
	UploadsMaxMB  int    `toml:"uploads_max_mb" check:"0..2000"` // 0: only the limit of the Bot API server applies
	RetentionDays int    `toml:"retention_days" default:"30" check:"1..3650" applies:"at once"`
}

// Log configures ductor's log.
type Log struct {
	Level  string `toml:"level" default:"info" check:"debug|info|warn|error" applies:"at once"`
	Format string `toml:"format" default:"text" check:"text|json"`
	File   string `toml:"file" check:"path"` // empty: standard error
}

// ShippedRoles returns the names of the roles that ductor contains. Their texts are in package roles.
func ShippedRoles() []string { return []string{"codereviewer", "default", "planner"} }

// Summarizes returns the configured model that writes summaries of long histories (see sessions.handoff_tokens). It
// returns the zero value if no model is configured.
func (c *Config) Summarizes() orchestrator.ModelChoice {
	name := c.Sessions.SummaryModel
	if alias, ok := c.Models[name]; ok {
		name = alias.Use
	}
	name, _, _ = strings.Cut(name, " ") // remove an effort, as in "opus high"
	agent, model, _ := strings.Cut(name, "/")
	return orchestrator.ModelChoice{Agent: cli.Agent(agent), Model: cli.ModelID(model)}
}

// RolesDir returns the directory "roles" beside the configuration file. Each file *.md in it is a role. The directory
// may not exist. Without a configuration file, RolesDir returns "".
func (c *Config) RolesDir() string {
	if c.File == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(c.File), "roles")
}

func (c *Config) hasRole(name string) bool {
	if _, ok := c.Roles[name]; ok || slices.Contains(ShippedRoles(), name) {
		return true
	}
	_, err := os.Stat(filepath.Join(c.RolesDir(), name+".md"))
	return err == nil && c.RolesDir() != "" && filepath.Base(name) == name
}
