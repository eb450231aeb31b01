package approval

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// readsDir creates a directory with files and links. Some of the links lead to files that may not be read without
// asking.
func readsDir(t *testing.T) string {
	root := t.TempDir()
	dir := filepath.Join(root, "src")
	for _, made := range []string{"src/sub", "src/.git", "outside"} {
		if err := os.MkdirAll(filepath.Join(root, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"out": filepath.Join(root, "outside"), "alias": "sub/a.txt", "plain": ".env", "git": ".git", "key": "sub/id_rsa", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// seen completes an approval like the service does.
func seen(a orchestrator.ApprovalRequest) orchestrator.ApprovalRequest {
	a = normalized(a)
	named := pathsOf(a)
	a.Links = linksOf(a.Dir, named, rooted.RealPaths([]string{a.Dir})[0], rooted.RealPaths(named))
	return a
}

// Every mode allows commands that only read. A command that reaches a hidden file, a secret file or a path outside of
// the directory, by name or by a link, is not only reading. Neither is a command that does more than print the files it
// names.
func TestWhatReads(t *testing.T) {
	dir := readsDir(t)
	reads := func(command string) bool {
		a := commandApproval(command)
		a.Dir = dir
		a = seen(a)
		return canAutoApprove(a) && readsBelow(a)
	}
	for _, command := range []string{
		"cat a.txt", "cat ./a.txt sub/b.txt", "cat -n alias", "cat " + dir + "/sub/b.txt", "head -n 20 a.txt", "head -20 a.txt", "tail -c 9 a.txt", "wc -l a.txt",
		"ls", "ls -la sub", "ls .", "pwd", "stat a.txt", "file a.txt", "du -sh sub", "tree sub", "nl -ba a.txt", "grep -n foo a.txt", "sed -n 1,200p a.txt",
		"bash -lc 'cat a.txt'",
	} {
		if !reads(command) {
			t.Errorf("%q is asked for", command)
		}
	}
	for _, command := range []string{
		"cat .env", "cat ./.env", "cat sub/../.env", "cat plain", "cat git/config", "ls .git", "cat id_rsa", "cat sub/credentials.json", "cat key", "cat out/x",
		"cat ../x", "cat /etc/passwd", "cat " + dir + "/../x", "cat " + dir + "/.env", "cat ~/x", "cat host:x", "cat a.txt@host:x", "cat http://x", "cat a=b",
		"cat a.txt > b", "cat < a.txt", "cat a.txt; id", "cat a.txt && id", "cat a.txt | sh", "cat a.txt &", "cat $(id)", "cat `id`", "cat $HOME", "cat a*", "cat a?", "cat {a,b}",
		"cat 'a.txt'", `cat "a.txt"`, `cat a\ b`, "cat a.txt\nid", "cat a.txt\x00", "cat  a.txt", " cat a.txt", "cat a.txt #", "cat !!",
		"tail -f a.txt", "tail -F a.txt", "grep -r foo .", "grep -R foo sub", "grep -f .env a.txt", "grep -fid_rsa a.txt", "grep --include=x a", "grep -drecurse a .",
		"sed -i 1p a.txt", "sed -n w a.txt", "sed -n 1,2p", "sed 1p a.txt", "sed -n 1e a.txt", "sed -n -i 1p", "file -C a.txt", "file -m x a.txt", "tree -o x", "du -X a.txt",
		"rg foo", "find . -delete", "git status", "git diff", "less a.txt", "./cat a.txt", "/tmp/cat a.txt", "sudo cat a.txt", "env cat a.txt", "A=b cat a.txt", "cat - a.txt", "cat -- a.txt",
		"touch a.txt", "rm a.txt", "tee a.txt", "", "bash -lc 'cat .env'", "bash -lc 'cat a.txt' x",
	} {
		if reads(command) {
			t.Errorf("%q is let through", command)
		}
	}
	if os.Remove(filepath.Join(dir, "alias")); !reads("cat alias") {
		t.Error("a file that is not there is asked for")
	}
}

// Other fields beside the command can make a request more than reading.
func TestWhatIsMoreThanReading(t *testing.T) {
	dir := readsDir(t)
	for input, want := range map[string]bool{
		`{"command":"cat a.txt"}`: true, `{"command":"cat a.txt","cwd":"` + dir + `","kind":"command"}`: true,
		`{"command":"cat a.txt","commands":["cat a.txt","id"]}`: false,
		`{"command":"cat a.txt","cwd":"/etc"}`:                  false,
		`{"command":"rm -rf x","command":"cat a.txt"}`:          false,
		`{"command":"cat a.txt","run_in_background":true}`:      false,
		`{"command":"cat a.txt","is_background":true}`:          false,
		`{"command":"cat a.txt","env":{"PATH":"x"}}`:            false,
		`{"command":["cat","a.txt"]}`:                           false,
	} {
		a := commandApproval("")
		a.Dir, a.Request.Input, a.Request.Title = dir, []byte(input), ""
		if got := readsBelow(seen(a)); got != want {
			t.Errorf("%s reads: %v", input, got)
		}
		if a.Request.Reason = "it concerns .env"; readsBelow(seen(a)) {
			t.Errorf("%s with a reason is let through", input)
		}
		if a.Request.Reason, a.Request.Tool = "", "mcp__server__run"; readsBelow(seen(a)) {
			t.Errorf("%s of a tool that is no shell is let through", input)
		}
	}
}

// A tool that only reads is judged by the file that it reads.
func TestWhatAToolReads(t *testing.T) {
	dir := readsDir(t)
	tool := func(path string, more func(*orchestrator.ApprovalRequest)) bool {
		a := orchestrator.ApprovalRequest{Dir: dir, Request: &cli.ApprovalAsked{Tool: "view", Effect: cli.Effect{Dir: dir, Read: path}}}
		named := pathsOf(a)
		a.Links = linksOf(a.Dir, named, rooted.RealPaths([]string{a.Dir})[0], rooted.RealPaths(named))
		if more != nil {
			more(&a)
		}
		return canAutoApprove(a) && readsBelow(a)
	}
	for path, want := range map[string]bool{
		"a.txt": true, dir + "/sub/b b.txt": true, dir: true, "alias": true,
		".env": false, dir + "/.env": false, "plain": false, "out/x": false, "/etc/passwd": false, "../x": false, "~/x": false, "key": false, "": false, dir + "2/x": false,
		"a\nb": false, strings.Repeat("a/", pathBytes): false,
	} {
		if got := tool(path, nil); got != want {
			t.Errorf("a tool reads %q: %v", path, got)
		}
	}
	for name, more := range map[string]func(*orchestrator.ApprovalRequest){
		"a change": func(a *orchestrator.ApprovalRequest) { a.Request.Changes = []cli.FileChanged{{Path: "a.txt"}} },
		"a plan":   func(a *orchestrator.ApprovalRequest) { a.Request.Tool = cli.PlanTool },
		"wider right": func(a *orchestrator.ApprovalRequest) {
			a.Request.Fields = []cli.Field{{Name: "x", Weight: cli.WiderField}}
		},
	} {
		if tool("a.txt", more) {
			t.Errorf("%s is let through", name)
		}
	}
}

// No rule and no mode allows a command that names one of ductor's own files.
func TestACommandNamesOurFiles(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Policy: Policy{Protected: []string{filepath.Join(dir, "state")}}})
	for command, want := range map[string]bool{"cat state/token": true, "cat " + dir + "/state/token": true, "cat other": false, "make state": true} {
		a := commandApproval(command)
		a.Dir = dir
		if got := s.touchesOwn(a); got != want {
			t.Errorf("%q touches them: %v", command, got)
		}
	}
}

// If an agent names a plan by its file, ductor reads the plan from there. A plan that cannot be read, or is too long,
// cannot be allowed.
func TestThePlanOfAFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"plan.md": "1. do it\n", "long.md": strings.Repeat("x", planBytes+1), "blank.md": " \n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plan.md", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	r := &Requests{s: New(Options{}), log: slog.New(slog.DiscardHandler)}
	for name, want := range map[string]string{"plan.md": "1. do it", "long.md": "", "blank.md": "", "link.md": "", "none.md": ""} {
		p := cli.ApprovalAsked{Tool: cli.PlanTool, Title: filepath.Join(dir, name)}
		r.readPlan(t.Context(), &p)
		if p.Detail != want || p.Allowable() != (want != "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	other := cli.ApprovalAsked{Tool: "Bash", Title: filepath.Join(dir, "plan.md")}
	if r.readPlan(t.Context(), &other); other.Detail != "" {
		t.Error("a file is read for what is no plan")
	}
}
