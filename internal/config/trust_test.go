package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheConfigurationIsNeverThatOfTheWorkingDirectory(t *testing.T) {
	t.Chdir(filepath.Dir(write(t, 0o600, "")))
	for name, c := range map[string]struct {
		vars       map[string]string
		want, fail string
	}{
		"the user's":           {nil, "/home/ada/.config/ductor/config.toml", ""},
		"the system's rule":    {map[string]string{"XDG_CONFIG_HOME": "/conf"}, "/conf/ductor/config.toml", ""},
		"a relative directory": {map[string]string{"XDG_CONFIG_HOME": "."}, "/home/ada/.config/ductor/config.toml", ""},
		"a variable":           {map[string]string{PathVariable: "/etc/ductor.toml"}, "/etc/ductor.toml", ""},
		"a relative variable":  {map[string]string{PathVariable: "config.toml"}, "", "must be absolute"},
		"no home":              {map[string]string{"HOME": ""}, "", "-c FILE"},
		"a relative home":      {map[string]string{"HOME": "."}, "", "-c FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DefaultPath(environment(c.vars))
			if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAConfigurationThatOthersCanWriteIsRefused(t *testing.T) {
	text := "telegram.token = \"" + token + "\"\n"
	for name, c := range map[string]struct {
		dir, file fs.FileMode
		linked    bool // named in a directory of the user's, and lying in the one with that mode
		fix       string
	}{
		"all is well":                           {0o755, 0o644, false, ""},
		"a group may write it":                  {0o700, 0o620, false, "chmod go-w FILE"},
		"all may write it":                      {0o700, 0o602, false, "chmod go-w FILE"},
		"a group may replace it":                {0o720, 0o600, false, "chmod go-w DIR"},
		"all may replace it":                    {0o777, 0o600, false, "chmod go-w DIR"},
		"a link to where others may replace it": {0o777, 0o600, true, "chmod go-w DIR"},
		"a link":                                {0o755, 0o600, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.file, text)
			dir := filepath.Dir(path)
			if err := os.Chmod(dir, c.dir); err != nil {
				t.Fatal(err)
			}
			fix := strings.NewReplacer("FILE", path, "DIR", dir).Replace(c.fix)
			if c.linked {
				link := filepath.Join(filepath.Dir(write(t, 0o600, "")), "link.toml")
				if err := os.Symlink(path, link); err != nil {
					t.Fatal(err)
				}
				path = link
			}
			_, err := LoadFrom(path, environment(nil))
			if (err == nil) != (c.fix == "") || err != nil && !strings.Contains(err.Error(), fix) {
				t.Errorf("got %v, want %q", err, fix)
			}
		})
	}
}

func TestAnotherUsersConfigurationIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := write(t, 0o600, "telegram.token = \""+token+"\"\n")
	for _, foreign := range []string{path, filepath.Dir(path)} {
		if err := os.Chown(foreign, 1234, -1); err != nil {
			t.Fatal(err)
		}
		_, err := LoadFrom(path, environment(nil))
		if err == nil || !strings.Contains(err.Error(), "chown 0 "+foreign) {
			t.Errorf("got %v", err)
		}
		if err := os.Chown(foreign, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATokenFileThatOthersCanWriteIsRefused(t *testing.T) {
	file := write(t, 0o622, token)
	_, err := LoadFrom(write(t, 0o600, "telegram.token_file = \""+file+"\"\n"), environment(nil))
	if err == nil || !strings.Contains(err.Error(), "chmod go-w "+file) {
		t.Errorf("got %v", err)
	}
}
