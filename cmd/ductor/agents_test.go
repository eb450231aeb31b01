package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/acp"
)

// protocolStub is a program that speaks as much of the Agent Client Protocol as the question for its log-in needs.
const protocolStub = `#!/bin/sh
while read -r line; do
	id=${line#*\"id\":}
	id=${id%%[,\}]*}
	case $line in
	*'"initialize"'*) result='{"protocolVersion":1,"agentInfo":{"name":"stub","version":"9.8.7"}}' ;;
	*'"session/new"'*) result='{"sessionId":"s"}' ;;
	*) continue ;;
	esac
	echo '{"jsonrpc":"2.0","id":'$id',"result":'$result'}'
done
`

// loggedOutStub speaks the protocol, and requires a log-in.
var loggedOutStub = strings.NewReplacer(
	`"result":'$result'`, `'$result'`, `result='{"protocol`, `result='"result":{"protocol`,
	`result='{"sessionId":"s"}'`, `result='"error":{"code":-32000,"message":"no account"}'`,
).Replace(protocolStub)

// catalogueTown returns a town whose PATH has stubs for agents of the catalogue, and its configuration file.
func catalogueTown(t *testing.T, stubs map[string]string) (*town, string) {
	t.Helper()
	town := surroundings(t, nil)
	bin := t.TempDir()
	for command, script := range stubs {
		if err := os.WriteFile(filepath.Join(bin, command), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	path := town.writeConfig()
	amend(t, path, "[telegram]", "# my own words\n[telegram]")
	return town, path
}

func idsOf(entries []acp.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestEveryAgentOfTheCatalogue tests that the doctor accepts the configuration that ductor agents add of each entry
// writes.
func TestEveryAgentOfTheCatalogue(t *testing.T) {
	stubs := map[string]string{}
	for _, e := range acp.Catalogue() {
		stubs[e.Command] = protocolStub
	}
	_, path := catalogueTown(t, stubs)
	before := readFile(t, path)
	code, stdout, stderr := runDuctor(t, append([]string{"agents", "add", "--wait", patience.String(), "-c", path},
		idsOf(acp.Catalogue())...)...)
	if code != exitOK || strings.Count(stdout, "is added to") != len(acp.Catalogue()) {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	after := readFile(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(after, before) ||
		!strings.Contains(after, "# my own words") {
		t.Errorf("%v, %v: the file became\n%s", info, err, after)
	}
	_, stdout, stderr = runDuctor(t, "doctor", "--json", "-c", path)
	var found []map[string]string
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	states := map[string]string{}
	for _, f := range found {
		if states[f["name"]] += f["state"] + " " + f["text"] + "\n"; f["state"] == "failed" {
			t.Errorf("the doctor says %v", f)
		}
	}
	code, listed, _ := runDuctor(t, "agents", "--wait", patience.String(), "-c", path)
	for _, e := range acp.Catalogue() {
		state := "/" + e.Command + " 9.8.7, logged in"
		if got := states["agent "+e.ID]; !strings.HasPrefix(got, "ok ") || !strings.Contains(got, state) {
			t.Errorf("the doctor says of %s: %q", e.ID, got)
		}
		if !regexp.MustCompile(`(?m)^` + e.ID + ` +yes +/.*` + regexp.QuoteMeta(state)).MatchString(listed) {
			t.Errorf("exit %d; %s is not listed:\n%s", code, e.ID, listed)
		}
	}
	code, stdout, _ = runDuctor(t, "agents", "add", "opencode", "--wait", patience.String(), "-c", path)
	if code != exitOK || !strings.Contains(stdout, "already") || readFile(t, path) != after {
		t.Errorf("adding twice: exit %d, %s", code, stdout)
	}
}

// TestAgentsThatAreNotInstalled tests that ductor agents add names the command that installs each missing agent.
func TestAgentsThatAreNotInstalled(t *testing.T) {
	_, path := catalogueTown(t, nil)
	before := readFile(t, path)
	code, _, stderr := runDuctor(t, append([]string{"agents", "add", "-c", path}, idsOf(acp.Catalogue())...)...)
	for _, e := range acp.Catalogue() {
		if !strings.Contains(stderr, e.HowToInstall("")) {
			t.Errorf("exit %d; it does not say how to install %s:\n%s", code, e.ID, stderr)
		}
	}
	if code == exitOK || readFile(t, path) != before {
		t.Errorf("exit %d; the file became\n%s", code, readFile(t, path))
	}
}

// TestAgentsWithoutAConfiguration tests that a user sees the agents of the machine before ductor setup, the useful first.
func TestAgentsWithoutAConfiguration(t *testing.T) {
	_, path := catalogueTown(t, map[string]string{"qwen": protocolStub})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runDuctor(t, "agents", "--wait", patience.String(), "-c", path)
	if code != exitOK || !strings.Contains(stderr, "there is no configuration at "+path+"; ductor setup writes it") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	order := regexp.MustCompile(`(?s)^AGENT.*\nclaude +first .*\ncodex +yes .*\n` +
		`qwen +no; .* 9\.8\.7, logged in, live\namp +no +not installed`)
	if !order.MatchString(stdout) {
		t.Errorf("the agents are\n%s", stdout)
	}
	if code, _, stderr = runDuctor(t, "agents", "add", "qwen", "-c", path); code != exitConfig {
		t.Errorf("an agent was added to no configuration: exit %d, %s", code, stderr)
	}
}

// TestAgentsWithAccounts tests that ductor agents lists the accounts of an agent behind the default agent.
func TestAgentsWithAccounts(t *testing.T) {
	_, path := catalogueTown(t, nil)
	amend(t, path, "[telegram]", fmt.Sprintf("[agents.claude.accounts.work]\nhome = %q\n[telegram]", t.TempDir()))
	code, stdout, stderr := runDuctor(t, "agents", "--wait", patience.String(), "-c", path)
	order := regexp.MustCompile(`^AGENT.*\nclaude +first .*\nclaude@work +in /account `)
	if code != exitOK || !order.MatchString(stdout) {
		t.Errorf("exit %d, %s; the agents are\n%s", code, stderr, stdout)
	}
}

// TestAgentsThatAreNone tests ductor agents with unknown names and with other programs of these names.
func TestAgentsThatAreNone(t *testing.T) {
	_, path := catalogueTown(t, map[string]string{
		"opencode": "#!/bin/sh\necho 'OpenCode 9.9, the best agent'; exit 0\n",
		"goose":    "#!/bin/sh\nexec sleep 1000\n",
		"kilo":     "#!/bin/sh\necho 'Usage: kilo GRAMS' >&2; exit 3\n",
		"qwen":     protocolStub,
		"auggie":   loggedOutStub,
	})
	before := readFile(t, path)
	code, stdout, stderr := runDuctor(t, "agents", "add", "--wait", "2s", "-c", path, "opncode", "claude", "zzz",
		"opencode", "goose", "kilo")
	for _, want := range []string{
		`no agent "opncode"; did you mean opencode?`, `no agent "zzz"; docs/agents.md`,
		"opencode was not added", "goose was not added", "kilo was not added", "Another program may have its name",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	if code == exitOK || readFile(t, path) != before || !strings.HasPrefix(stdout, "claude is in "+path+" already") {
		t.Errorf("exit %d, %s; the file became\n%s", code, stdout, readFile(t, path))
	}
	list := func(wait time.Duration) {
		code, stdout, stderr = runDuctor(t, "agents", "--wait", wait.String(), "-c", path)
	}
	list(2 * time.Second) // goose does not answer, so ductor waits this long
	for _, name := range []string{"opencode", "goose", "kilo"} {
		if !regexp.MustCompile(`(?m)^` + name + ` +no; to use it: ductor agents add ` + name +
			` +/.*(does not run|does not say whether)`).MatchString(stdout) {
			t.Errorf("exit %d, %s; %s is missing in\n%s", code, stderr, name, stdout)
		}
	}
	if goose, err := exec.LookPath("goose"); err != nil || os.Remove(goose) != nil {
		t.Fatalf("goose cannot be removed: %v", err)
	}
	list(patience)
	for _, want := range []string{
		`(?m)^claude +first `, `(?m)^qwen +no; .* 9\.8\.7, logged in`, `(?m)^junie +no +not installed\. Install Junie`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	if err := os.MkdirAll(filepath.Join(path+".part", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr = runDuctor(t, "agents", "add", "qwen", "-c", path); code == exitOK ||
		!strings.Contains(stderr, "add qwen to "+path) || stdout != "" || readFile(t, path) != before {
		t.Errorf("a file that cannot be written: exit %d, %s%s", code, stdout, stderr)
	}
	if err := os.RemoveAll(path + ".part"); err != nil {
		t.Fatal(err)
	}
	loggedOut := regexp.MustCompile(`auggie is added to .*/auggie is not logged in\. (.* )?Run auggie login`)
	code, stdout, stderr = runDuctor(t, "agents", "add", "auggie", "--wait", patience.String(), "-c", path)
	if code != exitOK || !loggedOut.MatchString(stdout) {
		t.Errorf("an agent without a log-in: exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = runDuctor(t, "agents", "ad"); code == exitOK ||
		!strings.Contains(stderr, `unknown command "ad"`) {
		t.Errorf("a mistyped subcommand: exit %d, %s", code, stderr)
	}
}

const (
	catalogueBegin = "<!-- catalogue: `go test ./cmd/ductor -run TestTheDocsListTheCatalogue -update` writes this " +
		"table from cli/acp/catalog.toml -->\n"
	catalogueEnd = "<!-- end of catalogue -->"
)

func TestTheDocsListTheCatalogue(t *testing.T) {
	var table strings.Builder
	table.WriteString(catalogueBegin + "| agent | program | log-in; key | models | modes, and what holds them " +
		"| a project's settings | images | resumes; in a terminal | state | tested |\n" +
		strings.Repeat("|---", 10) + "|\n")
	for _, e := range acp.Catalogue() {
		resumes := cmp.Or(e.Loads, "not known")
		if len(e.Resume) > 0 {
			resumes += "; `" + strings.ReplaceAll(strings.Join(e.Resume, " "), "{id}", "ID") + "`"
		}
		access := slices.Concat([]string{e.Login}, e.Keys)
		if e.Login == "" && len(e.Keys) == 0 {
			access = e.Auth
		}
		fmt.Fprintf(&table, "| `%s`: %s | `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", e.ID, e.Name,
			strings.Join(append([]string{e.Command}, e.Args...), " "), listOf(access), cmp.Or(e.Models, "not known"),
			modesOf(e), projectOf(e), cmp.Or(e.Images, "not known"), resumes, listOf(e.State),
			cmp.Or(e.Tested, "not tested"))
	}
	path := filepath.Join("..", "..", "docs", "agents.md")
	page := readFile(t, path)
	have := regexp.MustCompile(`(?s)` + regexp.QuoteMeta(catalogueBegin) + `.*?` +
		regexp.QuoteMeta(catalogueEnd)).FindString(page)
	switch want := table.String() + catalogueEnd; {
	case have == want:
	case *updateDocs && have != "":
		if err := os.WriteFile(path, []byte(strings.Replace(page, have, want, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/agents.md says\n%s\nbut the catalogue has\n%s\nrun it with -update", have, want)
	}
}

// listOf formats the known words of a list.
func listOf(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "" })
	if len(words) == 0 {
		return "not known"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// projectOf describes the settings that a project can contain for an agent.
func projectOf(e acp.Entry) string {
	if len(e.Project.Files) == 0 {
		return "not known: `." + e.ID + "/`, `." + e.Command + "/`"
	}
	if len(e.Project.Env) == 0 && e.Project.Meta == "" {
		return "needs your permission: " + listOf(e.Project.Files)
	}
	return "ignored until you allow them: " + listOf(e.Project.Files)
}

// modesOf describes how an agent is held to permission modes.
func modesOf(e acp.Entry) string {
	var modes []string
	for _, mode := range cli.PermissionModes() {
		h, listed := e.Holds[mode]
		if !listed {
			continue
		}
		var by []string
		if h.Mode != "" {
			by = append(by, "its mode `"+h.Mode+"`")
		}
		if h.Option != "" {
			by = append(by, "its option `"+h.Option+"`")
		}
		for _, name := range slices.Sorted(maps.Keys(h.Env)) {
			by = append(by, "`"+name+"`")
		}
		if len(h.Args) > 0 {
			by = append(by, "`"+strings.Join(h.Args, " ")+"`")
		}
		modes = append(modes, string(mode)+": "+strings.Join(by, " and "))
	}
	return cmp.Or(strings.Join(modes, "; "), "its own, if their names fit")
}
