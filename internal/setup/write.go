package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"ductor/internal/config"
	"ductor/internal/secrets"
)

const header = `# ductor's configuration. Keep it private: it holds the token of your bot.
# docs/reference.md lists every key with its default; what is not here keeps it. ductor setup changes the keys below and
# keeps all else.

`

func (s *setup) write(ctx context.Context) error {
	base := s.before
	if len(bytes.TrimSpace(base)) == 0 {
		base = []byte(header)
	}
	next, err := config.Edit(base, s.changes)
	if err != nil {
		return fmt.Errorf("change %s: %w", s.path, err)
	}
	if bytes.Equal(next, s.before) {
		s.Say("%s stays as it is.", s.path)
		return s.makeDir()
	}
	hidden := secrets.NewSet(append(s.cfg.Secrets(), s.previousToken())...)
	s.Say("%s", strings.TrimRight(hidden.String(udiff.Unified(s.path, s.path, string(s.before), string(next))), "\n"))
	agreed, err := Agree(ctx, s.Console, "Write this?", "yes")
	if err != nil {
		return err
	}
	if !agreed {
		return errors.New("nothing was written")
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if err := s.keepOld(); err != nil {
		return err
	}
	if err := config.Replace(s.path, next, s.world.Environment); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.Say("%s is written.", s.path)
	return nil
}

// keepOld stores a copy of the file that the owner has agreed to replace. It replaces no earlier copy.
func (s *setup) keepOld() error {
	if s.replaced == nil {
		return nil
	}
	f, err := os.OpenFile(s.backup, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(s.replaced)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("keep the old file: %w", err)
	}
	return nil
}

// previousToken returns the token in the file before the changes, or "".
func (s *setup) previousToken() string {
	before, _, err := config.Draft(s.path, s.world.Environment)
	if err != nil {
		return ""
	}
	return before.Telegram.Token.Reveal()
}
