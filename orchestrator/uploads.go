package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// addDirs are the directories that a conversation's agent may read besides its own: the folder of what people sent to
// the conversation, and of no other. It is made if it is missing, since agents look for it when they start. A link in its
// place is not given to the agent: it could lead to the folder of another conversation.
func (o *Orchestrator) addDirs(id ConversationID) []string {
	if o.opts.UploadsDir == "" {
		return nil
	}
	dir := filepath.Join(o.opts.UploadsDir, id.UploadFolder())
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		o.log.Warn("the folder of a chat's files cannot be made", "dir", dir, "err", err)
		return nil
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		o.log.Warn("a chat's files are kept from its agent: their folder is a link, or no directory", "dir", dir, "err", err)
		return nil
	}
	return []string{dir}
}
