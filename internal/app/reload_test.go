package app

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/keys"
	"ductor/orchestrator"
)

// atOnce lists the keys that apply at once, those of named tables with a star in place of the name.
func atOnce(of reflect.Type, prefix string, applies config.Applies) (keys []string) {
	for f := range of.Fields() {
		key, applies := f.Tag.Get("toml"), cmp.Or(config.Applies(f.Tag.Get("applies")), applies)
		switch {
		case f.Anonymous || key == ",inline":
			keys = append(keys, atOnce(f.Type, prefix, applies)...)
		case key == "" || key == "-":
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, atOnce(f.Type, prefix+key+".", applies)...)
		case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct:
			keys = append(keys, atOnce(f.Type.Elem(), prefix+key+".*.", applies)...)
		case applies == config.AtOnce:
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

// reloadRig is an App whose configuration file the test changes.
type reloadRig struct {
	*App
	t    *testing.T
	path string
	more string // the end of the file
}

const reloadToken = "123456789:AAExample-token_for-tests0000000000"

const noon = "[jobs.noon]\nschedule = \"every day at 12:00\"\nprompt = \"look\"\nagent = \"claude\"\nquiet_from = " +
	"\"02:00\"\nquiet_to = \"05:00\"\n"

// newReloadRig starts an App. more is added to its configuration.
func newReloadRig(t *testing.T, more ...string) *reloadRig {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	r := &reloadRig{t: t, path: filepath.Join(home, "config.toml"), more: strings.Join(more, "")}
	for _, dir := range []string{"ductor/shop", "ductor/other"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write("")
	cfg, err := r.load()
	if err != nil {
		t.Fatal(err)
	}
	scrub := NewScrubber(cfg)
	log, err := OpenLog(cfg.Log, scrub, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r.App, err = Build(t.Context(), cfg, Options{Log: log.Logger, Level: log.Level, Scrub: scrub,
		Load: r.load}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *reloadRig) load() (config.Config, error) { return config.Load(r.path) }

// base is the file to which each row adds a key. It has the tables that a key needs.
const base = `[telegram]
token = "` + reloadToken + `"
allowed_users = [1, 2]
allowed_groups = [-5]
[users.1]
role = "owner"
[users.2]
role = "user"
[roles.kind]
prompt = "be kind"
[models.quick]
use = "claude/haiku"
[projects.named.shop]
dir = "~/ductor/shop"
[agents.acp.crow]
path = "crow"
[agents.acp.crow.holds.ask]
option = "mode"
value = "ask"
[agents.acp.qwen.accounts.work]
home = "~/qwen-work"
[agents.acp.crow.project]
files = [".crow/"]
[notify]
quiet_from = "02:00"
quiet_to = "05:00"
[heartbeat]
enabled = true
quiet_from = "02:00"
quiet_to = "05:00"
` + noon

// write writes base with "key = value" added to its table.
func (r *reloadRig) write(row string) {
	r.t.Helper()
	text := base
	if key, value, ok := strings.Cut(row, " = "); ok {
		i := strings.LastIndexByte(key, '.')
		header, line := "["+key[:i]+"]\n", key[i+1:]+" = "
		before, after, there := strings.Cut(text, header)
		if !there {
			before, after = text, ""
		}
		table, rest := after, ""
		if n := strings.Index(after, "\n["); n >= 0 {
			table, rest = after[:n+1], after[n+1:]
		}
		lines := slices.DeleteFunc(strings.SplitAfter(table, "\n"), func(l string) bool {
			return strings.HasPrefix(l, line)
		})
		text = before + header + line + value + "\n" + strings.Join(lines, "") + rest
	}
	if err := os.WriteFile(r.path, []byte(text+r.more), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// seen returns the values that the readers of a table get, as text.
func (r *reloadRig) seen(table string) string {
	r.t.Helper()
	served, turns := r.botOptions(nil), conversationOptions(r.cfg, r.App)
	switch table {
	case "telegram", "users":
		return fmt.Sprintf("%+v %v %v", served.Allow.Policy(), r.users.RoleOf(1),
			[]any{r.users.RoleOf(2), r.users.RoleOf(3)})
	case "stream":
		return fmt.Sprintf("%+v %+v", served.Cards.Look(), turns.Live().Settings)
	case "notify":
		night := time.Date(2026, 5, 4, 3, 0, 0, 0, time.Local)
		return fmt.Sprintf("%v %v %v %v %v", served.Silence(), turns.QuietHour(night), served.Quiet(night),
			turns.Live().LongTurn, turns.Live().Settings.Notify)
	case "permissions":
		return fmt.Sprintf("%+v %v", turns.Live(), turns.Approvers(orchestrator.ConversationID{Chat: -5}, 2))
	case "agents": // TestAReloadRenewsOnlyChangedAgents tests the rest
		return fmt.Sprintf("%+v %+v", turns.Live(), r.now().Agents.ACP)
	case "queue", "sessions", "recovery":
		return fmt.Sprintf("%+v", turns.Live())
	case "budget":
		day, month := budgetToWatch{r.App}.Limits()
		return fmt.Sprintf("%+v %v %v", r.now().Budget, day, month)
	case "consult":
		return fmt.Sprint(served.Group())
	case "projects":
		return fmt.Sprintf("%v %+v", r.now().projects, turns.Live().Projects)
	case "roles":
		role, _ := turns.Roles.Role("kind")
		return fmt.Sprintf("%+v", role)
	case "models":
		return fmt.Sprintf("%v %v", served.Aliases(), r.gateway().(configuredModels).models())
	case "jobs", "heartbeat":
		jobs, err := r.db.Jobs(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range jobs {
			jobs[i].Job.Created, jobs[i].Next, jobs[i].Planned = time.Time{}, time.Time{}, time.Time{}
		}
		slices.SortFunc(jobs, func(a, b orchestrator.JobStatus) int {
			return strings.Compare(string(a.Job.ID), string(b.Job.ID))
		})
		return fmt.Sprintf("%+v", jobs)
	case "retention", "storage":
		keep := r.now().Retention
		said := fmt.Sprint(r.now().Storage.RetentionDays, keep.StepsDays, keep.BackupsDays, keep.BackupsMB)
		for _, k := range retentionRules(r.now().Config, r.db, &r.envs) {
			said += fmt.Sprintf(" %s %+v", k.Name, k.Limits)
		}
		return said
	case "log":
		return r.Level.String()
	}
	return ""
}

// liveRows returns a changed value for each key that takes effect at once.
func liveRows() []string {
	return []string{
		`telegram.allowed_users = [1, 2, 3]`, `telegram.allowed_groups = [-6]`, `telegram.group_members = "all"`,
		`telegram.group_trigger = "all"`,
		`telegram.abort_words = ["halt"]`, `telegram.reactions = false`, `users.2.role = "viewer"`,
		`stream.interval_private = "2s"`, `stream.interval_group = "5s"`, `stream.min_chars = 50`,
		`stream.max_chars = 100`, `stream.max_messages = 7`,
		`stream.idle = "900ms"`, `stream.sentence_ends = false`, `stream.paragraph_ends = false`,
		`stream.show_thinking = true`, `stream.mode = "draft"`,
		`stream.display = "plain"`, `stream.footer = []`, `stream.status_after = "7s"`,
		`notify.mode = "never"`, `notify.long = "2m"`, `notify.silence = "9m"`, `notify.quiet_from = "03:30"`,
		`notify.quiet_to = "02:30"`,
		`queue.max = 3`, `sessions.idle_reset = "3h"`, `sessions.daily_reset = "04:00"`, `sessions.handoff_tokens = 77`,
		`sessions.default_role = "kind"`,
		`recovery.rate_limited = "wait"`, `recovery.retries = 1`, `recovery.retry_after = "1m"`,
		`budget.day = 1.5`, `budget.month = 2.5`, `budget.user_day = 3.5`, `budget.user_month = 4.5`,
		`budget.job_day = 5.5`, `budget.job_month = 6.5`,
		`agents.claude.model = "opus"`, `agents.claude.effort = "high"`, `agents.codex.model = "m"`,
		`agents.codex.effort = "low"`,
		`agents.gemini.model = "m"`, `agents.gemini.effort = "low"`, `agents.copilot.model = "m"`,
		`agents.copilot.effort = "low"`,
		`permissions.mode = "plan"`, `permissions.allowed_tools = ["Read"]`, `permissions.denied_tools = ["web"]`,
		`permissions.approvers = "members"`,
		`consult.group = ["claude", "codex"]`, `projects.named.shop.dir = "~/ductor/other"`,
		`projects.named.shop.context = ["A.md"]`,
		`projects.named.shop.allowed_tools = ["Read"]`, `projects.named.shop.max_turns = 3`,
		`projects.named.shop.add_dirs = ["~/other"]`, `projects.named.shop.mcp = ["none"]`,
		`projects.named.shop.share_sessions = true`,
		`projects.named.shop.tools = ["read"]`, `projects.named.shop.denied_tools = ["web"]`,
		`roles.kind.prompt = "be brief"`, `roles.kind.append = false`, `roles.kind.agent = "codex"`,
		`roles.kind.model = "m"`, `roles.kind.tools = ["read"]`, `roles.kind.allowed_tools = ["Read"]`,
		`roles.kind.max_turns = 3`, `roles.kind.add_dirs = ["~/other"]`, `roles.kind.mcp = ["none"]`,
		`roles.kind.denied_tools = ["web"]`,
		`models.quick.use = "claude/opus"`, `models.quick.context = 5`, `models.quick.input_price = 1.5`,
		`models.quick.output_price = 2.5`,
		`jobs.noon.enabled = false`, `jobs.noon.schedule = "every day at 13:00"`, `jobs.noon.prompt = "listen"`,
		`jobs.noon.missed = "all"`,
		`jobs.noon.overlap = "queue"`, `jobs.noon.chat = 2`, `jobs.noon.topic = 3`, `jobs.noon.session = "shared"`,
		`jobs.noon.agent = "codex"`,
		`jobs.noon.model = "m"`, `jobs.noon.effort = "low"`, `jobs.noon.dir = "~/ductor/other"`,
		`jobs.noon.timeout = "5m"`, `jobs.noon.retries = 2`,
		`jobs.noon.backoff = "2m"`, `jobs.noon.sandbox = "docker"`, `jobs.noon.permission = "plan"`,
		`jobs.noon.rules = ["Read"]`, `jobs.noon.tools = ["read"]`,
		`jobs.noon.denied_tools = ["web"]`, `jobs.noon.zone = "Asia/Tokyo"`, `jobs.noon.quiet_from = "01:00"`,
		`jobs.noon.quiet_to = "04:00"`, `jobs.noon.quiet_policy = "skip"`,
		`heartbeat.enabled = false`, `heartbeat.every = "3h"`, `heartbeat.prompt = "hm"`, `heartbeat.ok_word = "FINE"`,
		`heartbeat.session = "shared"`,
		`heartbeat.chat = 2`, `heartbeat.topic = 3`, `heartbeat.permission = "plan"`, `heartbeat.rules = ["Read"]`,
		`heartbeat.tools = ["read"]`,
		`heartbeat.denied_tools = ["web"]`, `heartbeat.zone = "Asia/Tokyo"`, `heartbeat.quiet_from = "01:00"`,
		`heartbeat.quiet_to = "04:00"`, `heartbeat.quiet_policy = "skip"`,
		`storage.retention_days = 3`, `log.level = "debug"`,
		`retention.uploads_mb = 3`, `retention.transcripts_days = 3`, `retention.transcripts_mb = 3`,
		`retention.audit_days = 3`, `retention.audit_mb = 3`,
		`retention.steps_days = 3`, `retention.steps_mb = 3`, `retention.runs_days = 3`, `retention.runs_mb = 3`,
		`retention.homes_days = 3`,
		`retention.homes_mb = 3`, `retention.containers_mb = 3`, `retention.backups_days = 3`,
		`retention.backups_mb = 3`,
	}
}

// liveAgentRows returns the same for the agents of [agents.acp].
func liveAgentRows() []string {
	return []string{
		`agents.acp.crow.enabled = false`, `agents.acp.crow.path = "raven"`, `agents.acp.crow.args = ["acp"]`,
		`agents.acp.crow.env = ["A"]`, `agents.acp.crow.models = ["m"]`, `agents.acp.crow.model = "m"`,
		`agents.acp.crow.auth_method = "key"`, `agents.acp.crow.holds.ask.mode = "safe"`,
		`agents.acp.crow.holds.ask.option = "other"`, `agents.acp.crow.holds.ask.value = "other"`,
		`agents.acp.crow.holds.ask.env = {A = "1"}`, `agents.acp.crow.holds.ask.args = ["--ask"]`,
		`agents.acp.qwen.accounts.work.home = "~/other"`,
		`agents.acp.crow.project.files = [".crow/", "x"]`, `agents.acp.crow.project.env = {A = "1"}`,
		`agents.acp.crow.project.args = ["--bare"]`, `agents.acp.crow.project.meta = "{}"`,
	}
}

// TestEachKeyThatCountsAtOnceDoes changes each of these keys in the file, reloads, and checks that its readers see
// the new value.
func TestEachKeyThatCountsAtOnceDoes(t *testing.T) {
	r := newReloadRig(t)
	missing := atOnce(reflect.TypeFor[config.Config](), "", "")
	for _, row := range append(liveRows(), liveAgentRows()...) {
		key, _, _ := strings.Cut(row, " = ")
		starred := key
		for _, name := range []string{"noon", "kind", "quick", "shop", "crow", "ask", "qwen", "work"} {
			starred = strings.Replace(starred, "."+name+".", ".*.", 1)
		}
		starred = strings.Replace(starred, "users.2.", "users.*.", 1)
		table, _, _ := strings.Cut(key, ".")
		before := r.seen(table)
		r.write(row)
		changes, err := r.Reload(t.Context())
		if err != nil {
			t.Errorf("%s: %v", row, err)
			continue
		}
		if len(changes) != 1 || changes[0].Key != key || changes[0].Applies != config.AtOnce {
			t.Errorf("%s: the changes are %+v", row, changes)
		}
		if after := r.seen(table); after == before {
			t.Errorf("%s changes nothing of\n%s", row, after)
		}
		missing = slices.DeleteFunc(missing, func(k string) bool { return k == starred })
		r.write("")
		if _, err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := r.seen(table); again != before {
			t.Errorf("%s: back again it is\n%s\nand was\n%s", row, again, before)
		}
	}
	if len(missing) > 0 {
		t.Errorf("nothing shows that these count at once: %q", missing)
	}
}

// TestAReloadRenewsOnlyChangedAgents tests that a reload keeps the providers whose settings and keys are the same, and
// that it hides new keys before an agent gets them.
func TestAReloadRenewsOnlyChangedAgents(t *testing.T) {
	r := newReloadRig(t)
	var stored []keys.Key
	r.Load = func() (config.Config, error) {
		cfg, err := r.load()
		cfg.Keys = stored
		return cfg, err
	}
	find := func(agent cli.Agent) cli.Provider {
		for _, p := range r.machine.used {
			if p.Agent() == agent {
				return p
			}
		}
		return nil
	}
	for _, step := range []struct {
		row     string
		keys    []keys.Key
		renewed bool
		gone    bool
	}{
		{row: `queue.max = 3`},
		{row: `agents.acp.crow.args = ["acp"]`, renewed: true},
		{row: `agents.acp.crow.args = ["acp"]`},
		{row: `agents.acp.crow.enabled = false`, renewed: true, gone: true},
		{renewed: true},
		{keys: []keys.Key{{Agent: "crow", Name: "A_KEY", Value: "a-long-secret"}}, renewed: true},
		{keys: []keys.Key{{Agent: "crow", Name: "A_KEY", Value: "a-long-secret"}}},
		{keys: []keys.Key{
			{Agent: "crow", Name: "A_KEY", Value: "a-long-secret"},
			{Agent: "crow@work", Name: "A_KEY", Value: "a-second-secret"},
		}, renewed: true},
		{keys: []keys.Key{
			{Agent: "crow", Name: "A_KEY", Value: "a-long-secret"},
			{Agent: "crow@work", Name: "A_KEY", Value: "a-third-secret"},
		}, renewed: true},
	} {
		crow, claude := find("crow"), find("claude")
		stored = step.keys
		r.write(step.row)
		if _, err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := find("crow")
		if (now != crow) != step.renewed || (now == nil) != step.gone || find("claude") != claude || claude == nil {
			t.Errorf("%+v: crow was %p and is %p, claude %p and %p", step, crow, now, claude, find("claude"))
		}
	}
	if said := r.Scrub.String("a-long-secret"); strings.Contains(said, "a-long") {
		t.Errorf("a new key shows: %q", said)
	}
}

// TestAReloadWithAnErrorChangesNothing tests that a rejected reload changes nothing and names the line and the key.
func TestAReloadWithAnErrorChangesNothing(t *testing.T) {
	r := newReloadRig(t)
	for row, want := range map[string]string{
		`queue.max = -1`:                     "queue.max: ",
		`queue.maxx = 1`:                     "did you mean \"max\"?",
		`jobs.noon.schedule = "whenever"`:    "config.toml:32:1: jobs.noon.schedule: ",
		`permissions.denied_tools = ["mcp"]`: "permissions.denied_tools: ",
		`telegram.token = ""`:                "telegram.token: ",
	} {
		before := r.now().Config
		r.write(row)
		said := r.reloadFor(t.Context(), orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 1}})
		if !strings.Contains(said, want) || !strings.Contains(said, "The old settings stay in use") {
			t.Errorf("%s: it says %q", row, said)
		}
		if after := r.now().Config; !reflect.DeepEqual(before, after) {
			t.Errorf("%s counts", row)
		}
	}
}
