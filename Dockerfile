# Facsimile on one machine or behind a proxy; see docs/deployment.md for which of this was tried.
FROM python:3.11.14-slim-bookworm

ENV PYTHONUNBUFFERED=1 FACSIMILE_HOME=/workspace
WORKDIR /app

# parts first: they change seldom, and their layer is the large one
COPY requirements.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock

# what only several servers need: `--build-arg CLUSTER=1`
ARG CLUSTER=
COPY requirements-cluster.txt ./
RUN if [ -n "$CLUSTER" ]; then pip install --no-cache-dir -r requirements-cluster.txt; fi

# nobody logs in as this user; a number, so that a cluster can see that it is not root
RUN useradd --system --uid 10001 --user-group --create-home facsimile
RUN install --directory --owner=facsimile --group=facsimile --mode=0700 /workspace

# named one by one: no secrets, no workspace and no tests can come along
COPY app.py ./
COPY .streamlit/config.toml .streamlit/config.toml
COPY core core
COPY pages pages
# the user below may not write here, and every worker would compile everything anew
RUN python -m compileall -q app.py core pages

USER 10001
VOLUME /workspace
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0"]
