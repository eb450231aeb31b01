package skills_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli/claude/skills"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFind tests skills, commands, plugins, links to them, and files that set their name.
func TestFind(t *testing.T) {
	home, project := t.TempDir(), filepath.Join(t.TempDir(), "shop")
	for path, text := range map[string]string{
		home + "/.claude/skills/deploy/SKILL.md": "user",
		home + "/.claude/skills/deploy/other.md": "no",
		home + "/.claude/skills/other/SKILL.md":  "---\nname: 'deploy'\n---\nnames itself",
		home + "/.claude/skills/more/SKILL.md": "---\ndescription: deploy\n---\nname: " +
			"deploy\n---\nno",
		home + "/.claude/plugins/cache/shop/1/skills/deploy/SKILL.md": "plugin",
		filepath.Dir(project) + "/.claude/commands/deploy.md":         "above",
		project + "/.claude/commands/web/deploy.md":                   "command",
		home + "/elsewhere/SKILL.md":                                  "linked by the user",
		project + "/skills/deploy.md":                                 "linked inside",
	} {
		write(t, path, text)
	}
	symlink(t, home+"/elsewhere", home+"/.claude/commands/deploy")
	symlink(t, "../../skills/deploy.md", project+"/.claude/commands/deploy.md")
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	all := []string{"above", "command", "linked by the user", "linked inside", "names itself", "plugin", "user"}
	for name, want := range map[string][]string{"deploy": all, "shop:deploy": all, "/deploy": all, "none": nil} {
		found, err := skills.Find(getenv, project, name)
		var texts []string
		for _, f := range found {
			texts = append(texts, f.Text[strings.LastIndexByte(f.Text, '\n')+1:])
		}
		slices.Sort(texts)
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("%s: %q, %v, want %q", name, texts, err, want)
		}
	}
	if found, err := skills.Find(getenv, "", "deploy"); err != nil || len(found) != 4 {
		t.Errorf("without the project: %v, %v", found, err)
	}
	write(t, project+"/.claude/skills/long/SKILL.md", strings.Repeat("x", 200<<10))
	for _, name := range []string{"long", "", " / "} {
		if found, err := skills.Find(getenv, project, name); err == nil {
			t.Errorf("%q: %v", name, found)
		}
	}
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// A project or a plugin could show a file of the user in a chat by a link.
func TestFindDoesNotShowFilesOutside(t *testing.T) {
	for name, place := range map[string]string{
		"project": "/shop/sub/.claude/skills/deploy/SKILL.md", "parent": "/shop/.claude/commands/deploy.md",
		"plugin": "/home/.claude/plugins/cache/x/commands/deploy.md",
	} {
		for kind, to := range map[string]string{
			"absolute": "/proc/self/environ", "relative": "", "named": "",
		} {
			base := t.TempDir()
			home, dir, path := base+"/home", base+"/shop/sub", base+place
			write(t, home+"/secret", "hunter2")
			write(t, home+"/.claude/skills/deploy/SKILL.md", "of the user")
			switch kind {
			case "relative":
				var err error
				if to, err = filepath.Rel(filepath.Dir(path), home+"/secret"); err != nil {
					t.Fatal(err)
				}
			case "named":
				to, path = home+"/named.md", filepath.Dir(path)+"/other.md"
				write(t, to, "---\nname: deploy\n---\nhunter2")
			}
			symlink(t, to, path)
			write(t, dir+"/x", "")
			getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
			if found, err := skills.Find(getenv, dir, "deploy"); err == nil || len(found) > 1 {
				t.Errorf("%s, %s: %v, %v", name, kind, found, err)
			}
			if found, err := skills.Find(getenv, dir, "others"); err != nil || len(found) > 0 {
				t.Errorf("%s, %s: of another skill: %v, %v", name, kind, found, err)
			}
		}
	}
}

// TestMainAnswers tests that Main prints the result of Find.
func TestMainAnswers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	write(t, home+"/.claude/skills/deploy/SKILL.md", "user")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{home, "deploy"}, 0, `{"files":[{"name":"` + home +
			`/.claude/skills/deploy/SKILL.md","text":"user"}]}`},
		{[]string{home, "none"}, 0, `{}`}, {[]string{home}, 1, `{"error":"want two arguments: a directory and a skill"}`},
	} {
		var out bytes.Buffer
		if code := skills.Main(c.args, &out); code != c.code || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("%q: %d %s", c.args, code, out.String())
		}
	}
}
