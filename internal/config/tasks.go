package config

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Target is the conversation in which a task runs and shows its results.
type Target struct {
	Chat  int64 `toml:"chat"` // 0: the private chat of the first of allowed_users
	Topic int   `toml:"topic"`
}

// Quiet is the time of day without runs; both ends are empty for none.
type Quiet struct {
	Zone        string `toml:"zone"`       // IANA name; empty: the machine's
	QuietFrom   string `toml:"quiet_from"` // "15:04"
	QuietTo     string `toml:"quiet_to"`
	QuietPolicy string `toml:"quiet_policy" default:"hold" check:"hold|skip"` // "hold" or "skip"
}

// TaskSettings says how a task runs. What is empty is as the conversation chose.
type TaskSettings struct {
	Session string        `toml:"session" default:"own" check:"own|shared"`
	Agent   string        `toml:"agent"`
	Model   string        `toml:"model"` // only with Agent, as Effort
	Effort  string        `toml:"effort"`
	Dir     string        `toml:"dir" check:"path"`        // only with an own session
	Timeout time.Duration `toml:"timeout" check:"0..168h"` // 0: agents.turn_timeout
	Retries int           `toml:"retries" check:"0..10"`
	Backoff time.Duration `toml:"backoff" default:"1m" check:"1s..6h"`
	Sandbox string        `toml:"sandbox" check:"off|docker"` // SandboxDocker: in a container, whatever the project says; only with an own session
}

// Rights is what a task may do without being allowed to by a button.
type Rights struct {
	Permission string   `toml:"permission" check:"plan|ask|accept-edits|auto|bypass"` // empty: the stricter of permissions.mode and "ask"
	Rules      []string `toml:"rules"`                                                // patterns that go through; package orchestrator reads them
	ToolLists
}

// Job is a prompt that is asked by a schedule.
type Job struct {
	Enabled  bool   `toml:"enabled" default:"true"`
	Schedule string `toml:"schedule"` // what it may say is package heartbeat's to know
	Prompt   string `toml:"prompt"`
	Missed   string `toml:"missed" default:"once" check:"once|skip|all"` // "once", "skip" or "all"
	Overlap  string `toml:"overlap" default:"skip" check:"skip|queue"`
	Target
	TaskSettings
	Rights
	Quiet
}

// Heartbeat is the proactive prompt.
type Heartbeat struct {
	Enabled bool          `toml:"enabled"`
	Every   time.Duration `toml:"every" default:"1h" check:"1m..168h"`
	Prompt  string        `toml:"prompt" default:"Look whether there is anything that I should know."`
	OKWord  string        `toml:"ok_word" default:"HEARTBEAT_OK"`
	Session string        `toml:"session" default:"own" check:"own|shared"`
	Target
	Rights
	Quiet
}

// Webhooks is what other programs may start. Nothing is listened for without a hook.
type Webhooks struct {
	Listen string          `toml:"listen" default:"127.0.0.1:8787"`
	Remote bool            `toml:"remote"`
	Hooks  map[string]Hook `toml:"hooks"` // by name; nil for none
}

// Hook is one webhook.
type Hook struct {
	Auth      string `toml:"auth" default:"bearer" check:"bearer|github|stripe"`
	Secret    Secret `toml:"secret"`
	Prompt    string `toml:"prompt"`
	BodyMaxKB int    `toml:"body_max_kb" default:"256" check:"1..1024"`
	PerMinute int    `toml:"per_minute" default:"30" check:"1..6000"`
	Target
	TaskSettings
	Rights
	Quiet
}

// Retention is what is kept besides what storage.retention_days is about; 0 is no limit.
type Retention struct {
	UploadsMB       int `toml:"uploads_mb" check:"0..1048576"`
	TranscriptsDays int `toml:"transcripts_days" check:"0..1048576"`
	TranscriptsMB   int `toml:"transcripts_mb" check:"0..1048576"`
	AuditDays       int `toml:"audit_days" check:"0..1048576"`
	AuditMB         int `toml:"audit_mb" check:"0..1048576"`
	StepsDays       int `toml:"steps_days" default:"30" check:"0..1048576"`
	StepsMB         int `toml:"steps_mb" default:"200" check:"0..1048576"`
	RunsDays        int `toml:"runs_days" check:"0..1048576"`
	RunsMB          int `toml:"runs_mb" check:"0..1048576"`
	HomesDays       int `toml:"homes_days" check:"0..1048576"`
	HomesMB         int `toml:"homes_mb" check:"0..1048576"`
	ContainersMB    int `toml:"containers_mb" check:"0..1048576"`
	BackupsDays     int `toml:"backups_days" default:"7" check:"0..1048576"` // 0: none are made
	BackupsMB       int `toml:"backups_mb" default:"1000" check:"1..1048576"`
}

// taskName is what a job or a webhook may be called: it stands in a URL, and in ids.
var taskName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`) })

func (c *Config) checkTasks(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Jobs)) {
		j, key := c.Jobs[name], "jobs."+dotted([]string{name})
		checkTaskName(p, key, name)
		needs(p, key+".schedule", j.Schedule, `a job needs a schedule, such as "every weekday at 8:30"`)
		needs(p, key+".prompt", j.Prompt, "a job needs a prompt")
		c.checkTaskSettings(p, key, j.TaskSettings)
		c.checkTask(p, key, j.Target, j.Quiet)
	}
	if h := c.Heartbeat; h.Enabled {
		needs(p, "heartbeat.prompt", h.Prompt, "is empty; write what the agent is asked")
		needs(p, "heartbeat.ok_word", h.OKWord, "is empty; the agent needs a word to say that there is nothing")
		c.checkTask(p, "heartbeat", h.Target, h.Quiet)
	}
	c.checkHooks(p)
}

// onlyHere says whether an address is one that other machines do not reach. It reports one that is none.
func onlyHere(p *problems, key, listen, example string) (host string, ok bool) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		p.add(key, "should be an address and a port, such as %s", example)
		return "", true
	}
	ip, err := netip.ParseAddr(host)
	return host, err == nil && ip.IsLoopback()
}

func (c *Config) checkHealth(p *problems) {
	if c.Health.Listen == "" {
		return
	}
	if host, ok := onlyHere(p, "health.listen", c.Health.Listen, "127.0.0.1:8788"); !ok {
		p.add("health.listen", "others could reach %s; monitors on this machine ask 127.0.0.1, and a proxy serves others", host)
	}
}

func (c *Config) checkHooks(p *problems) {
	w := c.Webhooks
	if host, ok := onlyHere(p, "webhooks.listen", w.Listen, "127.0.0.1:8787"); !ok && !w.Remote {
		p.add("webhooks.listen", "others could reach %s; put a proxy with TLS before ductor, or set webhooks.remote", host)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Hooks)) {
		h, key := w.Hooks[name], "webhooks.hooks."+dotted([]string{name})
		checkTaskName(p, key, name)
		if len(h.Secret) < 16 {
			p.add(key+".secret", "a secret has at least 16 characters; make one by: openssl rand -hex 32")
		}
		c.checkTaskSettings(p, key, h.TaskSettings)
		c.checkTask(p, key, h.Target, h.Quiet)
		p.word(key+".quiet_policy", h.QuietPolicy, "hold")
	}
}

// checkTask checks the settings that all tasks have.
func (c *Config) checkTask(p *problems, key string, at Target, q Quiet) {
	c.checkTarget(p, key, at)
	if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "Local" {
		p.add(key+".zone", "%q is no time zone such as Europe/Paris", q.Zone)
	}
	checkHours(p, key, q.QuietFrom, q.QuietTo)
}

func checkTaskName(p *problems, key, name string) {
	if !taskName().MatchString(name) {
		p.add(key, "a name is small letters, digits, - and _, at most 48")
	}
}

func needs(p *problems, key, value, why string) {
	if strings.TrimSpace(value) == "" {
		p.add(key, "%s", why)
	}
}

func (c *Config) checkTaskSettings(p *problems, key string, m TaskSettings) {
	if m.Agent != "" {
		p.word(key+".agent", m.Agent, c.Agents.Names()...)
	} else if m.Model != "" || m.Effort != "" {
		p.add(key+".agent", "model and effort belong to an agent; name that agent here")
	}
	switch {
	case m.Dir == "":
	case m.Session == "shared":
		p.add(key+".dir", `the chat's session has its directory; set session = "own"`)
	case !slices.ContainsFunc(c.Projects.Roots, func(root string) bool { return inside(root, m.Dir) }):
		p.add(key+".dir", "%s is outside of projects.roots", m.Dir)
	}
	c.checkTaskSandbox(p, key+".sandbox", m)
	if m.Timeout >= c.Agents.StaleAfter {
		p.add(key+".timeout", "%s must be shorter than agents.stale_after, which is %s", short(m.Timeout), short(c.Agents.StaleAfter))
	}
}

// checkTaskSandbox lets a task ask for a sandbox, and never out of one.
func (c *Config) checkTaskSandbox(p *problems, key string, m TaskSettings) {
	if m.Sandbox == "" {
		return
	}
	if m.Sandbox == SandboxDocker && m.Session == "shared" {
		p.add(key, `a job in the chat's session runs where that session does; set session = "own"`)
	}
	if project, setting := c.Sandbox.At(cmp.Or(m.Dir, c.Projects.DefaultDir)); m.Sandbox == SandboxOff && setting.Mode == SandboxDocker {
		p.add(key, "its project %q is in a sandbox, and no job runs outside of that; leave this key out", project)
	}
}

// checkTarget refuses a chat in which the bot answers no user.
func (c *Config) checkTarget(p *problems, key string, at Target) {
	t := c.Telegram
	switch {
	case at.Topic < 0:
		p.add(key+".topic", "%d is no topic", at.Topic)
	case at.Chat == 0 && len(t.AllowedUsers) == 0:
		p.add(key+".chat", "telegram.allowed_users is empty, so name a chat")
	case at.Chat != 0 && !slices.Contains(t.AllowedUsers, at.Chat) && !slices.Contains(t.AllowedGroups, at.Chat):
		p.add(key+".chat", "%d is neither in telegram.allowed_users nor in allowed_groups", at.Chat)
	}
}

// checkHours refuses quiet hours that are not two times of day.
func checkHours(p *problems, key, from, to string) {
	for name, at := range map[string]string{"quiet_from": from, "quiet_to": to} {
		_, err := time.Parse("15:04", at)
		switch {
		case at == "" && from+to != "":
			p.add(key+"."+name, "quiet hours need quiet_from and quiet_to")
		case at != "" && err != nil:
			p.add(key+"."+name, `%q should be a time of day such as "22:00"`, at)
		}
	}
}
