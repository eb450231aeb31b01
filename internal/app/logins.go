package app

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"ductor/internal/rooted"
)

// loginsDir is the directory for the files of loginMemory, in the storage directory.
const loginsDir = "acp-logins"

// loginMemory implements acp.LoginMemory with a file. Its value is the path of the file.
type loginMemory string

// loginMemory returns the loginMemory of an account in an environment. The parameter account is a result of
// cli.Account.Of, such as "claude@work".
func (a agents) loginMemory(g runEnv, account string) loginMemory {
	file := url.PathEscape(g.name) + "," + url.PathEscape(account)
	return loginMemory(filepath.Join(a.cfg.Storage.Dir, loginsDir, file))
}

func (m loginMemory) LoadLogin() (string, error) {
	text, err := os.ReadFile(string(m))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

func (m loginMemory) SaveLogin(text string) error {
	return rooted.ReplaceFile(string(m), []byte(text), func(string) error { return nil })
}
