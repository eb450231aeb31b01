package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/secrets"
)

// console gives the same answer to every question. It records its output.
type console struct {
	answer string
	said   []string
}

func (c *console) Say(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *console) Ask(_ context.Context, question, _ string) (string, error) {
	c.said = append(c.said, question)
	return c.answer, nil
}

func (c *console) Secret(context.Context, string) (secrets.Value, error) { return "", nil }

// A file with mistakes is kept under another name and replaced, if the owner agrees.
func TestAFileWithMistakesIsReplaced(t *testing.T) {
	const broken, token = "[telegram\n", "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for answer, replaced := range map[string]bool{"yes": true, "no": false} {
		t.Run(answer, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			env := config.Environment{Getenv: func(name string) string {
				return map[string]string{"HOME": home, config.TokenVariable: token}[name]
			}}
			on := &console{answer: answer}
			if err := os.WriteFile(path+".bak", []byte("an earlier copy"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := &setup{Console: on, world: World{Environment: env}, path: path, dir: t.TempDir()}
			err := s.read(t.Context())
			if said := strings.Join(on.said, "\n"); !strings.Contains(said, "this is not TOML") ||
				!strings.Contains(said, "config.toml.bak.2?") {
				t.Errorf("it says %q", said)
			}
			if !replaced {
				if err == nil {
					t.Error("the setup continues although the owner disagreed")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s.addChange("telegram", "reactions", false, "")
			if err := s.write(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{".bak": "an earlier copy", ".bak.2": broken} {
				if old, err := os.ReadFile(path + name); err != nil || string(old) != want {
					t.Errorf("%s is %q, %v", name, old, err)
				}
			}
			if cfg, err := config.LoadFrom(path, env); err != nil || cfg.Telegram.Reactions {
				t.Errorf("the new file has reactions %v, %v", cfg.Telegram.Reactions, err)
			}
		})
	}
}
