package s3store

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/store"
)

const (
	partSize      = 16 << 20 // size of a part of all but the largest bodies, in bytes; S3 requires 5 MiB
	maxParts      = 10_000   // largest number of parts in S3
	parallelParts = 4        // number of parts that are uploaded at the same time
)

// multipartUpload is a create-only write in parts. Parts are invisible until the upload is complete,
// so the SDK may repeat the requests that upload them. Only the request that completes the upload is
// conditional.
type multipartUpload struct {
	s    *Store
	name *string
	src  *bodyReader

	id    string // upload ID; "" before the upload begins, and after it is complete or aborted
	parts []types.CompletedPart
}

// send uploads the parts and tries once to complete the upload. After an error, the next call of send
// continues the upload, or begins a new one if the old one was aborted.
func (u *multipartUpload) send(ctx context.Context) (store.Version, error) {
	if u.id == "" {
		if err := u.begin(ctx); err != nil {
			return "", err
		}
	}
	if err := u.sendParts(ctx); err != nil {
		u.abortIfOver(ctx, err)
		return "", err
	}
	out, err := u.s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.s.bucket, Key: u.name, UploadId: &u.id, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	}, noRetry)
	if err != nil {
		u.abortIfOver(ctx, err)
		return "", err
	}
	u.id = ""
	return tag(out.ETag)
}

// abortIfOver aborts the upload after an error with which it cannot continue, so that the next call of send
// begins a new one. After a conflict, S3 does not accept another completion. An upload that somebody else
// aborted, such as a lifecycle rule of the bucket, accepts no parts either.
func (u *multipartUpload) abortIfOver(ctx context.Context, err error) {
	if f := judge(err); f.unsettled && f.kind == nil {
		u.abort(ctx)
	}
}

func (u *multipartUpload) begin(ctx context.Context) error {
	in := &s3.CreateMultipartUploadInput{
		Bucket: &u.s.bucket, Key: u.name, StorageClass: types.StorageClass(u.s.options.StorageClass),
		ContentType: aws.String("application/octet-stream"),
	}
	in.ServerSideEncryption, in.SSEKMSKeyId = u.s.encryption()
	in.ChecksumAlgorithm = u.checksum()
	out, err := u.s.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return err
	}
	if aws.ToString(out.UploadId) == "" {
		return errors.New("the answer has no upload id")
	}
	u.id, u.parts = *out.UploadId, make([]types.CompletedPart, (u.src.size+u.partSize()-1)/u.partSize())
	return nil
}

// checksum returns the checksum algorithm that the SDK uses for each part, or "" for none. The
// request that begins an upload must name the algorithm.
func (u *multipartUpload) checksum() types.ChecksumAlgorithm {
	if u.s.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

func (u *multipartUpload) partSize() int64 { return max(partSize, (u.src.size+maxParts-1)/maxParts) }

func (u *multipartUpload) sendParts(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelParts)
	for i := range u.parts {
		if u.parts[i].ETag != nil {
			continue // an earlier try has uploaded the part
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			off := int64(i) * u.partSize()
			size := min(u.partSize(), u.src.size-off)
			out, err := u.s.client.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &u.s.bucket, Key: u.name, UploadId: &u.id, PartNumber: aws.Int32(int32(i + 1)),
				Body: u.src.section(off, size), ContentLength: aws.Int64(size), ChecksumAlgorithm: u.checksum(),
			})
			if err != nil {
				return err
			}
			u.parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
			return nil
		})
	}
	return group.Wait()
}

// abort deletes the parts of an incomplete upload, even if ctx has ended. If the process is killed,
// the parts stay until a lifecycle rule of the bucket deletes them.
func (u *multipartUpload) abort(ctx context.Context) {
	if u.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	// An error of AbortMultipartUpload is ignored. The upload may already be gone, and no code
	// relies on the abort.
	_, _ = u.s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.s.bucket, Key: u.name, UploadId: &u.id})
	u.id = ""
}
