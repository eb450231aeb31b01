package tgapi

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	telegram "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// Files is a message with one file, or an album. An album has 2 to 10 files, which are all pictures or all documents.
type Files struct {
	To       orchestrator.ConversationID
	Files    []File
	Caption  render.Text // text below the first file; at most 1024 UTF-16 units
	Keyboard Keyboard    // buttons of a single file; albums cannot have buttons
	ReplyTo  int
	Silent   bool
}

// File is a file to send. The maximum size is 50 MB, or 10 MB for a picture. Sending reads the whole file into memory.
type File struct {
	Name    string
	Content io.Reader
	Plain   string // content of a text file, if Content is nil; secrets are removed from it
	Size    int64  // length of Content in bytes
	Picture bool   // true to send the file as a picture, not as a document
	Caption string // for files of an album after the first file; the caption of the first file is Files.Caption
}

// slowest is the upload speed, in bytes per second, for which the timeout of an upload is just sufficient.
const slowest = 64 << 10

// SendFiles sends a message with files, and returns its ID. For an album, it returns the ID of the first message. Not
// idempotent.
func (c *Client) SendFiles(ctx context.Context, f Files) (int, error) {
	var size int64
	for i := range f.Files {
		if f.Files[i].Content == nil {
			f.Files[i].Content = strings.NewReader(c.scrub.String(f.Files[i].Plain))
		}
		size += f.Files[i].Size
	}
	f.Caption = c.scrub.Text(f.Caption)
	limit := c.timeout + time.Duration(size/slowest)*time.Second
	switch {
	case len(f.Files) != 1:
		return sendWithin(ctx, c, limit, "sendMediaGroup", c.api.SendMediaGroup, c.album(f))
	case f.Files[0].Picture:
		return sendWithin(ctx, c, limit, "sendPhoto", c.api.SendPhoto, &telegram.SendPhotoParams{
			ChatID: f.To.Chat, MessageThreadID: thread(f.To.Topic), Photo: f.Files[0].upload(),
			Caption: f.Caption.Text, CaptionEntities: entities(f.Caption.Entities), DisableNotification: f.Silent,
			ReplyParameters: replyTo(f.ReplyTo),
			ReplyMarkup:     markup(f.Keyboard),
		})
	}
	return sendWithin(ctx, c, limit, "sendDocument", c.api.SendDocument, &telegram.SendDocumentParams{
		ChatID: f.To.Chat, MessageThreadID: thread(f.To.Topic), Document: f.Files[0].upload(),
		Caption: f.Caption.Text, CaptionEntities: entities(f.Caption.Entities), DisableNotification: f.Silent,
		ReplyParameters: replyTo(f.ReplyTo),
		ReplyMarkup:     markup(f.Keyboard),
	})
}

// album returns the parameters of an album. The attachments are named like the files, because Telegram shows the names
// of the attachments.
func (c *Client) album(f Files) *telegram.SendMediaGroupParams {
	p := &telegram.SendMediaGroupParams{
		ChatID: f.To.Chat, MessageThreadID: thread(f.To.Topic), DisableNotification: f.Silent,
		ReplyParameters: replyTo(f.ReplyTo),
	}
	names := map[string]bool{}
	for i, file := range f.Files {
		caption := render.Plain(c.scrub.String(file.Caption))
		if i == 0 {
			caption = f.Caption
		}
		for names[file.Name] {
			file.Name = strconv.Itoa(i+1) + "-" + file.Name
		}
		names[file.Name] = true
		at := "attach://" + file.Name
		if file.Picture {
			p.Media = append(p.Media, &models.InputMediaPhoto{
				Media: at, MediaAttachment: file.Content, Caption: caption.Text,
				CaptionEntities: entities(caption.Entities),
			})
		} else {
			p.Media = append(p.Media, &models.InputMediaDocument{
				Media: at, MediaAttachment: file.Content, Caption: caption.Text,
				CaptionEntities: entities(caption.Entities),
			})
		}
	}
	return p
}

func (f File) upload() *models.InputFileUpload {
	return &models.InputFileUpload{Filename: f.Name, Data: f.Content}
}
