package config

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/orchestrator"
)

// Retention limits the age and size of stored data, in addition to storage.retention_days. 0 means no limit.
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
	BackupsDays     int `toml:"backups_days" default:"7" check:"0..1048576"` // 0: ductor makes no backups
	BackupsMB       int `toml:"backups_mb" default:"1000" check:"1..1048576"`
}

// taskName matches valid names of jobs, webhooks and sandbox projects. These names become parts of URLs and IDs.
var taskName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`) })

func checkTaskName(p *problems, key, name string) {
	if !taskName().MatchString(name) {
		p.add(key, "a name is small letters, digits, - and _, at most 48")
	}
}

// checkReferences checks a setting that refers to other settings. It chooses the check by the type of the setting, and
// not by its table.
func (c *Config) checkReferences(p *problems, s setting) {
	switch v := s.value.Interface().(type) {
	case heartbeat.JobSettings, webhook.HookSettings:
		_, name, _ := cutLast(s.key)
		checkTaskName(p, s.key, name)
	case orchestrator.ConversationID:
		c.checkChat(p, s.key, v)
	case orchestrator.JobTurn:
		c.checkJobTurn(p, s.key, v)
	case cli.Agent:
		if v != "" {
			p.word(s.key, string(v), c.Agents.Names()...)
		}
	case cli.ToolList:
		checkTools(p, s.key+".tools", v.Only, tools.CheckOnly)
		checkTools(p, s.key+".denied_tools", v.Denied, tools.Check)
	case orchestrator.Bounds:
		if len(c.Agents.ACP) == 0 {
			checkTools(p, s.key+".allowed_tools", v.AllowedTools, tools.Check)
		}
		checkTools(p, s.key+".mcp", v.MCP, c.CheckServer)
	}
}

// checkTools reports the names of tools that the function check rejects. A permission for such a name would have no
// effect.
func checkTools(p *problems, key string, names []string, check func(name string) error) {
	for _, name := range names {
		if err := check(name); err != nil {
			p.add(key, "%v", err)
		}
	}
}

func (c *Config) checkJobTurn(p *problems, key string, t orchestrator.JobTurn) {
	if t.Dir != "" && t.Session != orchestrator.SharedSession && !c.inRoots(t.Dir) {
		p.add(key+".dir", "%s is outside of projects.roots", t.Dir)
	}
	if t.Timeout >= c.Agents.StaleAfter {
		p.add(key+".timeout", "%s must be shorter than agents.stale_after, which is %s",
			short(t.Timeout), short(c.Agents.StaleAfter))
	}
	// If a project has a sandbox, a job may not run outside of it.
	project, setting := c.Sandbox.At(cmp.Or(t.Dir, c.Projects.DefaultDir))
	if t.Sandbox == orchestrator.SandboxOff && setting.Mode == orchestrator.SandboxDocker {
		p.add(key+".sandbox",
			"its project %q is in a sandbox, and no job runs outside of that; leave this key out", project)
	}
}

// inRoots reports whether agents may work in dir.
func (c *Config) inRoots(dir string) bool {
	return slices.ContainsFunc(c.Projects.Roots, func(root string) bool { return cli.Lies(dir, root) })
}

// checkChat checks that a job reports to a chat in which the bot answers.
func (c *Config) checkChat(p *problems, key string, in orchestrator.ConversationID) {
	t := c.Telegram
	switch {
	case in.Topic < 0:
		p.add(key+".topic", "%d is no topic", in.Topic)
	case in.Chat == 0 && len(t.AllowedUsers) == 0:
		p.add(key+".chat", "telegram.allowed_users is empty, so name a chat")
	case in.Chat != 0 && !slices.Contains(t.AllowedUsers, in.Chat) && !slices.Contains(t.AllowedGroups, in.Chat):
		p.add(key+".chat", "%d is neither in telegram.allowed_users nor in allowed_groups", in.Chat)
	}
}

// checkHealth checks that other machines cannot reach the address of the health server.
func (c *Config) checkHealth(p *problems) {
	if c.Health.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(c.Health.Listen)
	ip, notIP := netip.ParseAddr(host)
	if err != nil {
		p.add("health.listen", "should be an address and a port, such as 127.0.0.1:8788")
	} else if notIP != nil || !ip.IsLoopback() {
		p.add("health.listen",
			"others could reach %s; monitors on this machine ask 127.0.0.1, and a proxy serves others", host)
	}
}
