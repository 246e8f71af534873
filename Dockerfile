# A Passbook worker, with the starter beside it and a browser for screenshots. To call a model, build on it and add the agent:
#   FROM passbook:local
#   USER root
#   RUN apt-get update && apt-get install -y npm && npm install -g @anthropic-ai/claude-code
#   USER passbook
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 scripts/programs /out

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates chromium fonts-dejavu git iproute2 passt \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 passbook \
 && install -d -o passbook -g passbook /state /runs
COPY --from=build /out/ /usr/local/bin/
# By default a container offers no namespaces, so only the container restricts agents. docker-compose.yml allows them, and
# sets PASSBOOK_SANDBOX_MODE=workspace.
ENV PASSBOOK_SANDBOX_MODE=none PASSBOOK_KEEP_AWAKE=false PASSBOOK_STATE_DIR=/state PASSBOOK_RUN_ROOT=/runs PASSBOOK_ENVIRONMENT=container PASSBOOK_DRAIN=10m
USER passbook
WORKDIR /runs
CMD ["worker"]
