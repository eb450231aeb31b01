package relay

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/rooted"
)

// grantPrefix is the prefix of the tokens that CreateGrant creates. Package secrets recognizes tokens by it.
const grantPrefix = "grant_ductor_"

const (
	grantsFile = "mcp-tokens.json"
	grantsLock = "mcp-tokens.lock"
	mostGrants = 32
)

// Errors of CreateGrant and RevokeGrant.
var (
	ErrBadName = errors.New("a name has 1 to 32 letters, digits, dots, dashes and underscores")
	ErrTaken   = errors.New("there is a token of this name; revoke it first, or choose another name")
	ErrUnknown = errors.New("there is no token of this name")
	ErrTooMany = fmt.Errorf("there are %d tokens, which is the limit; revoke one", mostGrants)
)

// Grant describes an outside client and the token that it got; see the package comment. It contains only a hash of the
// token.
type Grant struct {
	Number  int       `json:"number"` // unique, and never used again
	Name    string    `json:"name"`
	Dir     string    `json:"dir,omitempty"` // the client's working directory; empty means the configured default
	Hash    string    `json:"hash"`
	Created time.Time `json:"created"`
}

type grantFile struct {
	Last   int     `json:"last"` // the highest Grant.Number that was ever used
	Tokens []Grant `json:"tokens"`
}

// Grants lists the grants in a state directory, the oldest first.
func Grants(dir string) ([]Grant, error) {
	f, err := readGrants(dir)
	return f.Tokens, err
}

// FindGrant returns the grant that belongs to a token. It returns false if the token is forged or was revoked.
func FindGrant(dir, token string) (Grant, bool, error) {
	f, err := readGrants(dir)
	if err != nil {
		return Grant{}, false, err
	}
	for _, t := range f.Tokens { // prevent timing attacks: compare in constant time
		if subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hashGrant(token))) == 1 {
			return t, true, nil
		}
	}
	return Grant{}, false, nil
}

// CreateGrant stores a grant with the name and the directory of g, and returns its token. The token cannot be retrieved
// later.
func CreateGrant(dir string, g Grant, now time.Time) (token string, err error) {
	if !validName(g.Name) {
		return "", ErrBadName
	}
	token = grantPrefix + rand.Text() + rand.Text()
	return token, changeGrants(dir, func(f *grantFile) error {
		switch {
		case slices.ContainsFunc(f.Tokens, named(g.Name)):
			return ErrTaken
		case len(f.Tokens) >= mostGrants:
			return ErrTooMany
		}
		f.Last++
		g.Number, g.Hash, g.Created = f.Last, hashGrant(token), now.UTC()
		f.Tokens = append(f.Tokens, g)
		return nil
	})
}

// RevokeGrant deletes a grant. Existing connections with its token continue until EndRevoked is called.
func RevokeGrant(dir, name string) error {
	return changeGrants(dir, func(f *grantFile) error {
		if !slices.ContainsFunc(f.Tokens, named(name)) {
			return ErrUnknown
		}
		f.Tokens = slices.DeleteFunc(f.Tokens, named(name))
		return nil
	})
}

// IsGrant reports whether a token has the form of the tokens that CreateGrant returns.
func IsGrant(token string) bool { return strings.HasPrefix(token, grantPrefix) }

func validName(name string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	return name != "" && len(name) <= 32 && !strings.ContainsRune("._-", rune(name[0])) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !plain(r) })
}

func named(name string) func(Grant) bool { return func(t Grant) bool { return t.Name == name } }

// hashGrant returns the hash of a token. It needs no salt, because a token is long and random.
func hashGrant(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func readGrants(dir string) (f grantFile, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, grantsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return grantFile{}, fmt.Errorf("read the tokens of MCP clients: %w", err)
	}
	return f, nil
}

// changeGrants calls edit to change the stored grants. Other processes that change grants wait until it releases a file
// lock.
func changeGrants(dir string, edit func(*grantFile) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("change the tokens of MCP clients: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, grantsLock), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("change the tokens of MCP clients: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("wait for another change of the tokens: %w", err)
	}
	f, err := readGrants(dir)
	if err != nil {
		return err
	}
	if err := edit(&f); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = rooted.ReplaceFile(filepath.Join(dir, grantsFile), append(raw, '\n'), nil)
	}
	if err != nil {
		return fmt.Errorf("store the tokens of MCP clients: %w", err)
	}
	return nil
}
