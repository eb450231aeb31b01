package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/docker"
	"ductor/orchestrator"
)

func TestAProjectHasOfTheSandboxWhatItDoesNotSay(t *testing.T) {
	c := load(t, `
		telegram.token = "`+token+`"
		projects.roots = ["/srv", "~"]
		[sandbox.projects.web]
		dir = "~/web/"
		mode = "docker"
		cpus = 2
		[sandbox.projects.shop]
		dir = "/srv/shop"
		image = "shop:1"
		seeds = []
		[sandbox]
		image = "agents:1"
		user = "7:8"
		idle = "1h"
		mounts = ["~/tools", "/opt:/tools:rw", "/a:ro"]
		seeds = ["~/.netrc", "/etc/x:y"]
		[sandbox.projects.built]
		dir = "/srv/shop/built"
		build_dir = "~/image"
	`, nil)
	general := tableOf[docker.Settings]()
	general.Image, general.User, general.Idle = "agents:1", "7:8", time.Hour
	general.Mounts = []string{"/home/ada/tools", "/opt:/tools:rw", "/a:ro"}
	general.Seeds = []string{"/home/ada/.netrc:.netrc", "/etc/x:y"}
	web, shop, built := general, general, general
	web.Mode, web.CPUs = orchestrator.SandboxDocker, 2
	shop.Image, shop.Seeds = "shop:1", []string{}
	built.Image, built.BuildDir = "", "/home/ada/image"
	want := Sandbox{Settings: general, Projects: map[string]SandboxProject{
		"web":   {Dir: "/home/ada/web", Settings: web},
		"shop":  {Dir: "/srv/shop", Settings: shop},
		"built": {Dir: "/srv/shop/built", Settings: built},
	}}
	if d := cmp.Diff(want, c.Sandbox); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	mounts, err := web.ParseMounts()
	if d := cmp.Diff([]docker.Mount{{Source: "/home/ada/tools", Target: "/home/ada/tools"}, {Source: "/opt", Target: "/tools", Writable: true}, {Source: "/a", Target: "/a"}}, mounts); d != "" || err != nil {
		t.Errorf("mounts: %v (-want +got):\n%s", err, d)
	}
	seeds, err := web.ParseSeeds()
	if d := cmp.Diff([]docker.Seed{{From: "/home/ada/.netrc", To: ".netrc"}, {From: "/etc/x", To: "y"}}, seeds); d != "" || err != nil {
		t.Errorf("seeds: %v (-want +got):\n%s", err, d)
	}
	for dir, want := range map[string]string{
		"/home/ada/web": "web", "/home/ada/web/a/b": "web", "/home/ada": DefaultSandbox, "/home/ada/website": DefaultSandbox,
		"/srv/shop": "shop", "/srv/shop/x": "shop", "/srv/shop/built/x": "built", "/srv": DefaultSandbox,
	} {
		name, setting := c.Sandbox.At(dir)
		if name != want || cmp.Diff(c.Sandbox.Named(want), setting) != "" {
			t.Errorf("%s is in %s", dir, name)
		}
	}
}

func TestSandboxDoubts(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing said":                 {"", ""},
		"a project alone":              {"[sandbox.projects.a]\ndir = \"/srv/a\"\nmode = \"docker\"", ""},
		"in the clear":                 {`sandbox.host = "tcp://engine:2375"`, "sandbox.host: tcp without"},
		"said once":                    {"[sandbox]\nhost = \"tcp://engine:2375\"\n[sandbox.projects.a]\ndir = \"/srv/a\"", "sandbox.host: tcp without"},
		"by certificate":               {"[sandbox]\nhost = \"tcp://engine:2376\"\nca = \"/ca.pem\"\ncert = \"/c.pem\"\nkey = \"/k.pem\"", ""},
		"a secret":                     {`sandbox.env = ["API_KEY=hunter2hunter2"]`, "API_KEY looks like a secret"},
		"no secret":                    {`sandbox.env = ["EDITOR=ed", "KEYMAP=de"]`, ""},
		"ductor's state in it":         {`sandbox.mode = "docker"`, "sandbox: /srv is in the sandbox as a whole"},
		"a processor that is no match": {`sandbox.cpus = 0.01`, "minutes to start"},
	} {
		t.Run(name, func(t *testing.T) {
			got := load(t, "telegram = { token = \""+token+"\", allowed_users = [7] }\nprojects.roots = [\"/srv\"]\nstorage.dir = \"/srv/state\"\n"+c.text, nil)
			all := strings.Join(got.Warnings, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) || len(got.Warnings) > 1 || strings.Contains(all, "hunter2") {
				t.Errorf("got %q, want %q", got.Warnings, c.want)
			}
		})
	}
}

func TestSecretsOfTheSandboxAreKnown(t *testing.T) {
	c := load(t, "telegram.token = \""+token+"\"\nsandbox.env = [\"MY_TOKEN=hunter2hunter2\", \"EDITOR=hunter22\"]", nil)
	if got := c.Secrets(); !strings.Contains(strings.Join(got, " "), "hunter2hunter2") || strings.Contains(strings.Join(got, " "), "hunter22 ") {
		t.Errorf("got %d secrets", len(got))
	}
}

// TestThePageOnSandboxesHasEveryKey holds docs/sandbox.md and the program together.
func TestThePageOnSandboxesHasEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // the default of each key
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, key := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			rows[key[1]] = strings.Trim(strings.TrimSpace(cells[2]), "`")
		}
	}
	set := tableOf[docker.Settings]()
	project := SandboxProject{Settings: set}
	var keys []string
	visit(setting{value: reflect.ValueOf(project)}, func(s setting) {
		if isValue(s) {
			keys = append(keys, s.key)
		}
	})
	if len(keys) < 20 {
		t.Fatalf("only %d keys were found; the test looks at the wrong thing", len(keys))
	}
	for _, key := range keys {
		shown, there := rows[key]
		if !there {
			t.Errorf("docs/sandbox.md has no %s", key)
			continue
		}
		if key == "dir" {
			continue
		}
		text := "telegram.token = \"" + token + "\"\nsandbox." + key + " = " + shown
		if d := cmp.Diff(set, load(t, text, nil).Sandbox.Settings); d != "" {
			t.Errorf("docs/sandbox.md says that %s is %s unless it is set (-default +page):\n%s", key, shown, d)
		}
	}
}
